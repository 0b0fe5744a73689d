"""Announce the starter encoder and the starter texts; nothing is read or generated here."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
from cse_core.records import EncoderSpec, SourceSpec


@hookimpl
def cse_models() -> list[EncoderSpec]:
    """Return the embedded encoder."""
    return [
        EncoderSpec(
            name="starter",
            summary="small BERT (4 layers, hidden 256, lower-cased) for trying things out",
            path="cse_starter:encoder",
            licence="weights Apache-2.0; trained on texts of English Wikipedia (CC BY-SA 3.0) and "
            "books in the public domain (Project Gutenberg)",
        )
    ]


@hookimpl
def cse_sources() -> list[SourceSpec]:
    """Return the embedded synthetic texts and graded pairs."""
    return [
        SourceSpec(
            name="starter",
            summary="synthetic: documents of a seeded grammar, English and German, graded pairs",
            factory="cse_starter.corpus:StarterCorpus",
            synthetic=True,
            licence="Apache-2.0",
        )
    ]
