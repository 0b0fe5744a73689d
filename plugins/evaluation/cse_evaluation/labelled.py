"""Labelled texts and labelled pairs of texts, and reading them from files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cse_cli.texts.tables import read_table, stem
from cse_core.data.articles import BODIES, is_article, unfold
from cse_core.data.tables import has_lone_surrogate
from cse_core.errors import CseError
from cse_evaluation.pairs import SENTENCE_COLUMNS

LABEL_COLUMNS = ("label", "labels", "class", "category")
"""Names of the label column, the preferred ones first; upper or lower case."""
TEXT_COLUMNS = ("text", "sentence", "review", "content")
"""Names of the text column, the preferred ones first; upper or lower case."""


@dataclass(frozen=True)
class LabelledSet:
    """A file of labelled texts.

    Attributes:
        name: File name without its endings, ``sst2.test``.
        path: Where it was read from.
        labels: The label of each row, as text.
        texts: The text of each row, or its first sentence.
        seconds: The second sentence of each row, None where rows are single texts.
    """

    name: str
    path: Path
    labels: tuple[str, ...]
    texts: tuple[str, ...]
    seconds: tuple[str, ...] | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.labels)


@dataclass(frozen=True)
class _Columns:
    """The columns of labelled rows; without text or both sentences they are articles."""

    label: str
    text: str | None
    both: tuple[str, str] | None
    articles: bool


def _columns(columns: Sequence[str]) -> _Columns | None:
    """Return which columns hold label and text; None where one of them lacks."""
    names = {column.lower(): column for column in reversed(columns)}
    label = _label_column(columns)
    both = next((both for both in SENTENCE_COLUMNS if all(name in names for name in both)), None)
    text = next((names[name] for name in TEXT_COLUMNS if name in names), None)
    articles = any(body in names for body in BODIES)
    if label is None or not (both or text or articles):
        return None
    pair = (names[both[0]], names[both[1]]) if both else None
    return _Columns(label, text, pair, articles)


def _label_column(columns: Sequence[str]) -> str | None:
    names = {column.lower(): column for column in reversed(columns)}
    return next((names[name] for name in LABEL_COLUMNS if name in names), None)


def is_labelled_file(path: str | os.PathLike[str]) -> bool:
    """Tell whether a table file holds labelled texts, pairs or articles, by its columns.

    Raises:
        CseError: If its head cannot be read.
    """
    return _columns(read_table(path)[0]) is not None


def read_labelled(path: str | os.PathLike[str]) -> LabelledSet:
    """Read labelled texts from a tsv, csv, jsonl or parquet file, gzipped or not.

    The columns may stand in any order, under any name of ``LABEL_COLUMNS`` and ``TEXT_COLUMNS``
    (or of ``SENTENCE_COLUMNS`` for pairs); others are ignored. Articles (``paras``, ``sections``)
    are one text each.

    Raises:
        CseError: If the file cannot be read as a table, a column is missing, a text is empty, a
            label is empty or not a plain value, or no row is left.
    """
    where = os.fspath(path)
    columns, rows = read_table(path)
    found = _columns(columns)
    if found is None:
        raise _missing_column(where, columns, _label_column(columns) is None)
    labels: list[str] = []
    first: list[str] = []
    second: list[str] = []
    for place, row in rows:
        labels.append(_label(row, found.label, place))
        if found.both:
            first.append(_text(row, found.both[0], place))
            second.append(_text(row, found.both[1], place))
        elif found.text is None or (found.articles and is_article(row)):
            first.append(_article(row, len(first), place))
        else:
            first.append(_text(row, found.text, place))
    if not labels:
        raise CseError("no rows below the header", where=where)
    return LabelledSet(
        stem(path), Path(path), tuple(labels), tuple(first), tuple(second) if found.both else None
    )


def _missing_column(where: str, columns: Sequence[str], label: bool) -> CseError:
    shown = ", ".join(repr(column[:40]) for column in columns[:8])
    if len(columns) > 8:
        shown += ", …"
    return CseError(
        f"no column {'label' if label else 'text'}; the columns are {shown}",
        where=where,
        hint="it needs columns label and text (sentence1 and sentence2 for pairs)",
    )


def _label(row: Mapping[str, Any], column: str, place: str) -> str:
    value = row.get(column)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    label = str(value).strip() if isinstance(value, str | int) else ""
    if not label:
        raise CseError(
            f"no label in the column {column!r}",
            where=place,
            value=value if value not in (None, "") else None,
            hint="a label is a word or an integer",
        )
    return label


def _text(row: Mapping[str, Any], column: str, place: str) -> str:
    value = row.get(column)
    if not isinstance(value, str) or not value.strip():
        raise CseError(f"no text in the column {column!r}", where=place)
    if has_lone_surrogate(value):
        raise CseError(f"{column!r} holds half a character", where=place)
    return value


def _article(row: dict[str, Any], number: int, place: str) -> str:
    if not is_article(row):
        raise CseError(f"no text and none of {', '.join(BODIES)}", where=place)
    (document,) = unfold(row, "document", number=number, where=place)
    return _text(document, "text", place)
