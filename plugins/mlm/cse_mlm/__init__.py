"""Masked language modelling: an augmenter that hides tokens, and the loss that predicts them."""
