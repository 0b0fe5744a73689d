"""Contrastive Tension: two encoders of one start that agree on identical texts."""
