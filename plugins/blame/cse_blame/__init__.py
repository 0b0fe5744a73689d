"""Which training rows moved the similarity of two texts, by gradient products at checkpoints."""
