"""Losses without negatives: they decorrelate the dimensions of the vectors of a batch."""
