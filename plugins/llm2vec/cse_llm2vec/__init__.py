"""LLM2Vec: decoders that read in both directions, by masked next-token prediction and SimCSE."""
