"""A table of text, whatever lays it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table of text; its first column names the rows.

    Attributes:
        caption: What its columns are, in a line or two.
        title: What is in it; empty where that is said elsewhere.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    title: str = ""
