"""Texts encoded once and kept in an index; those nearest to a query, by vectors and by words.

    from cse_search import Index

    Index("runs/mine/index").search("what to look for", top=3, bm25=0.3)

The first search opens the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cse_search.opened import Index as Index

__all__ = ["Index"]


def __getattr__(name: str) -> Any:
    if name != "Index":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cse_search.opened import Index

    return Index
