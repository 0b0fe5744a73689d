"""Training texts: files, installed data sets and data sets of the hub as one table of rows.

Nothing here imports torch, and nothing heavy (numpy, pyarrow, datasets) is imported before rows are
read; the records in ``plugin`` do not even import pydantic.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cse_defaults.texts.corpus import Corpus as Corpus
    from cse_defaults.texts.corpus import TextColumn as TextColumn
    from cse_defaults.texts.load import Data as Data
    from cse_defaults.texts.load import load_corpus as load_corpus
    from cse_defaults.texts.load import read_data as read_data

__all__ = [
    "Corpus", "Data", "TextColumn", "load_corpus", "read_data",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "load" if name in ("Data", "load_corpus", "read_data") else "corpus"
    return getattr(import_module(f"{__name__}.{module}"), name)
