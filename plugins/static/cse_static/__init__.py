"""Static embeddings: a table of token vectors, of which a text is the mean."""
