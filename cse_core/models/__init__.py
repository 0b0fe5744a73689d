"""Texts to vectors: the sentence encoder of a run, and saved models."""

from cse_core.models.saved_model import SentenceModel, load

__all__ = ["SentenceModel", "load"]
