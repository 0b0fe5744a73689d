"""Losses over pairs of texts with scores, CoSENT and AnglE, over classes, and over triplets."""
