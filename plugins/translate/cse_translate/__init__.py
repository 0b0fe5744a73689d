"""Parallel columns made by a translation model: ``cse data translate``."""
