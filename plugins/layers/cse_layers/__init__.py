"""Vectors of every layer, trained beside the last one's."""
