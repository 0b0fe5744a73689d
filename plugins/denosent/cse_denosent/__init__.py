"""DenoSent: a decoder rebuilds a text from its vector and noisy word embeddings."""
