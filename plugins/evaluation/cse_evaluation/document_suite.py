"""The document files of the data folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from cse_cli.plugins.data_folder import DATA_VARIABLE
from cse_core.errors import CseError
from cse_evaluation.documents import DocumentSet, is_document_file, read_documents
from cse_evaluation.suite import existing_folder
from cse_evaluation.tables import Located, locate_tables

BELOW = "docs"
"""The subfolder of the data folder that holds document files."""


def find_documents(data_dir: str | os.PathLike[str] | None = None) -> list[DocumentSet]:
    """Read every document file of the data folder or its subfolder ``docs``.

    Args:
        data_dir: As for ``cse_evaluation.suite.data_folder``.

    Raises:
        CseError: If the folder is not there or holds none, or a table is broken.
    """
    folder = existing_folder(data_dir, "the document files", "docs")
    found = locate_documents(folder)
    if found.broken:
        raise found.broken[0]
    if not found.files:
        raise CseError(
            f"no file of documents with titles is here or in its subfolder {BELOW}",
            where=str(folder),
            hint="`cse data fetch docs` brings some; or name the folder with --data-dir DIR or "
            f"{DATA_VARIABLE}, or a file with --documents FILE",
        )
    return [read_documents(path) for path in found.files.values()]


def locate_documents(folder: Path) -> Located:
    """Return where the document files are, of which only the columns are read."""
    return locate_tables((folder / BELOW, folder), is_document_file)


def check_distinct(sets: Sequence[DocumentSet]) -> None:
    """Refuse two sets of one name.

    Raises:
        CseError: If there are.
    """
    names = [each.name for each in sets]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise CseError(f"two document files are called {twice!r}", hint="rename one")
