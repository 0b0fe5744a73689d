"""The embedded default of the toolkit: a small encoder and texts of a seeded grammar."""
