"""The record of the backend of static embeddings; imports nothing heavy."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
from cse_core.records import BackendSpec


@hookimpl
def cse_models() -> list[BackendSpec]:
    """Bring the folders of model2vec and of sentence-transformers' StaticEmbedding."""
    summary = "tables of token vectors, as in model2vec and StaticEmbedding"
    return [BackendSpec(name="static", summary=summary, factory="cse_static.backend:Static")]
