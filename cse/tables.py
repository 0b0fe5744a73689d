"""Tables of graded or labelled rows, read row by row with the place of each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cse_core.data.files import json_lines, open_file, parquet_tables, separated
from cse_core.data.tables import BODIES, Reading, as_object, is_article, unfold
from cse_core.errors import CseError

TABLES = ("tsv", "csv", "jsonl", "parquet")
"""Formats whose rows have named values."""
TABLE_SUFFIXES = tuple(f".{form}{zipped}" for form in TABLES for zipped in (".gz", ""))
"""Endings of these, gzipped ones first."""
ARTICLE_COLUMNS = BODIES
"""Columns that make a row an article: its paragraphs, each a list of sentences."""
Row = tuple[str, dict[str, Any]]
"""Where a row is, for errors (``pairs.tsv, line 3``), and its values by column."""


def table_name(path: str | os.PathLike[str]) -> str:
    """Return a file's name without ``TABLE_SUFFIXES``: ``stsb.dev`` of ``stsb.dev.tsv.gz``."""
    name = Path(path).name
    for suffix in TABLE_SUFFIXES:
        if name.lower().endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return name


def read_table(path: str | os.PathLike[str]) -> tuple[list[str], Iterator[Row]]:
    """Read a table file row by row, values as they are.

    A tsv file has one tab between fields and no quoting; a csv file has ordinary quoting; a jsonl
    file has one object a line, and the keys of its first object are its columns. Each may be
    gzipped; text is UTF-8, with or without a byte-order mark.

    Returns:
        The columns, and the rows with their places. Blank lines are passed over.

    Raises:
        CseError: If the file is missing, a directory, unreadable, empty, blank, of another
            format, not what its name says, not UTF-8, or (while rows are read) a row is malformed.
    """
    file = open_file(os.fspath(path), Path(path))
    reading = Reading(file.name)
    if file.format not in TABLES:
        what = "graded or labelled rows are not read from this kind of file"
        hint = "name it " + ", ".join(f"*.{form}" for form in TABLES) + " (each also .gz)"
        raise CseError(what, where=file.name, hint=hint)
    if file.format == "parquet":
        tables = parquet_tables(file, reading)
        names = list(next(tables).column_names)
        values = (row for table in tables for row in table.to_pylist())
        return names, ((f"{file.name}, row {n}", row) for n, row in enumerate(values, 1))
    if file.format == "jsonl":
        first = next(json_lines(file, reading), None)
        if first is not None:
            return list(as_object(*first)), (
                (place, as_object(place, value)) for place, value in json_lines(file, reading)
            )
    else:
        records = separated(file, reading)
        header = next(records, None)
        if header is not None:
            columns = header[1]
            if file.format == "csv" and len(columns) == 1 and "\t" in columns[0]:
                hint = "name the file *.tsv"
                raise CseError("the header has tabs and no commas", where=file.name, hint=hint)
            return columns, (
                (f"{file.name}, line {number}", dict(zip(columns, fields, strict=True)))
                for number, fields in records
            )
    raise CseError("the file contains only blank lines", where=file.name)


def article_text(row: Mapping[str, Any], place: str) -> str | None:
    """Return an article's sentences as one text, None of any other row.

    Raises:
        CseError: If its sections or paragraphs have another form; ``place`` is where it is.
    """
    if not is_article(row):
        return None
    (document,) = unfold(row, "document", number=0, where=place)
    return str(document["text"])
