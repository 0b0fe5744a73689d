"""Losses that teach a model the vectors, margins or distributions of another."""
