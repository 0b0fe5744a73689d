"""Whitening: a head that is fitted to texts, and runs without training."""
