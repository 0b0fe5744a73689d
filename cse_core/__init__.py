"""Contrastive sentence embeddings: a core that knows texts, views and a step, but no paper.

The files beside this one are the contract: what an author of a plugin imports. The folders are the
rooms behind it, each of which imports only earlier ones (docs/architecture.md).
"""

from __future__ import annotations

__version__ = "0.1.0"
