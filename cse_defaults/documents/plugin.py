"""The source of documents; imports nothing heavy."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
from cse_core.loading import load_factory
from cse_core.records import SourceSpec

_HERE = "cse_defaults.documents.source"
MARKED = (".md", ".markdown", ".html", ".htm")
"""Endings of files that are a document wherever they are; a txt file is one in a folder."""


def _has_documents(name: str) -> bool:
    """Import what looks when it is asked."""
    return bool(load_factory(f"{_HERE}:has_documents")(name))


@hookimpl
def cse_sources() -> list[SourceSpec]:
    """Return the reader of folders, and of Markdown and HTML files."""
    return [
        SourceSpec(
            name="documents",
            summary="Markdown and HTML files, and folders of these and plain ones",
            factory=f"{_HERE}:Documents",
            endings=MARKED,
            takes=_has_documents,
        )
    ]
