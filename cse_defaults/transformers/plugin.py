"""The record of the backend of transformers; imports nothing of it."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
from cse_core.records import BackendSpec


@hookimpl
def cse_models() -> list[BackendSpec]:
    """Bring the models of transformers and sentence-transformers."""
    summary = "encoders of transformers and sentence-transformers, without work on padding"
    factory = "cse_defaults.transformers.backend:Transformers"
    return [BackendSpec(name="transformers", summary=summary, factory=factory)]
