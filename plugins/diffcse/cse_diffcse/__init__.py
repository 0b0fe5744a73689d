"""DiffCSE: the vector of a sentence helps a discriminator to find its replaced tokens."""
