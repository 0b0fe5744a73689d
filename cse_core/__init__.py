"""Contrastive sentence embeddings: a core that knows texts, views and a step, but no paper.

The files beside this one are the contract: what an author of a plugin imports. ``registry`` finds
what plugins bring. The engine and the defaults are packages of their own (docs/architecture.md).
"""

from __future__ import annotations

__version__ = "0.1.0"
