"""Contrastive sentence embeddings: a core that knows texts, views and a step, but no paper."""

__version__ = "0.1.0"
