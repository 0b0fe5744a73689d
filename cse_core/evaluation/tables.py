"""Rows of a table file (tsv, csv, jsonl, parquet, each also gzipped) with the place of each."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cse_core.data.files import TextFile, line_blocks, open_bytes, open_file
from cse_core.errors import CseError

FORMATS = ("tsv", "csv", "jsonl", "parquet")
SUFFIXES = tuple(f".{form}{zipped}" for form in FORMATS for zipped in (".gz", ""))
"""Every ending that can be read, gzipped ones first."""

Row = tuple[str, dict[str, Any]]
"""Where a row is, for errors (``pairs.tsv, line 3``), and its values by column."""
_Line = tuple[int, str]


def stem(path: str | os.PathLike[str]) -> str:
    """Return a file's name without the endings known here: ``stsb.dev`` of ``stsb.dev.tsv.gz``."""
    name = Path(path).name
    for suffix in SUFFIXES:
        if name.lower().endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return name


def table_files(folder: Path, endings: str | tuple[str, ...] = SUFFIXES) -> list[Path]:
    """Return the table files of a folder by name; none where there is no such folder."""
    if not folder.is_dir():
        return []
    files = sorted(folder.iterdir())
    return [path for path in files if path.name.lower().endswith(endings) and path.is_file()]


@dataclass(frozen=True)
class Located:
    """The tables of some folders, as their columns sort them.

    Attributes:
        files: Those that fit, by name without endings.
        others: Those that do not.
        broken: Why others cannot be looked at, an error for each.
    """

    files: dict[str, Path]
    others: tuple[Path, ...]
    broken: tuple[CseError, ...]


def locate_tables(places: Sequence[Path], fits: Callable[[Path], bool]) -> Located:
    """Look through folders for tables that fit; one that is broken hides none of the others.

    Where one name stands there several times, the first place and the first of ``SUFFIXES`` whose
    table fits is taken, and the rest is not looked at.

    Args:
        places: The folders, the preferred ones first; one that is not there holds nothing.
        fits: Tells by its columns whether a table fits.
    """
    files: dict[str, Path] = {}
    others: list[Path] = []
    broken: list[CseError] = []
    for place in places:
        for path in sorted(table_files(place), key=lambda path: (stem(path), _preference(path))):
            if stem(path) in files:
                continue
            try:
                if fits(path):
                    files[stem(path)] = path
                else:
                    others.append(path)
            except CseError as error:
                broken.append(error)
    return Located(files, tuple(others), tuple(broken))


def _preference(path: Path) -> int:
    return next(i for i, end in enumerate(SUFFIXES) if path.name.lower().endswith(end))


def read_table(path: str | os.PathLike[str]) -> tuple[list[str], Iterator[Row]]:
    """Read a table file.

    A tsv file has one tab between fields and no quoting; a csv file has ordinary quoting; a jsonl
    file has one object a line, and the keys of its first object are its columns.

    Args:
        path: File named ``*.tsv``, ``*.csv``, ``*.jsonl`` or ``*.parquet``, or one of these
            with ``.gz`` at the end. Text is UTF-8, with or without a byte-order mark.

    Returns:
        The columns, and the rows with their places. Blank lines are passed over.

    Raises:
        CseError: If the file is missing, a directory, unreadable, empty, blank, of another
            format, not what its name says, not UTF-8, or (while rows are read) a row is malformed.
    """
    file = open_file(os.fspath(path), Path(path))
    if file.format == "parquet":
        return _parquet(file)
    readers = {"tsv": _tsv, "csv": _csv, "jsonl": _jsonl}
    if file.format not in readers:
        raise CseError(
            "graded or labelled rows are not read from this kind of file",
            where=file.name,
            hint="name it " + ", ".join(f"*.{form}" for form in FORMATS) + " (each also .gz)",
        )
    return readers[file.format](file)


def _lines(file: TextFile) -> Iterator[_Line]:
    for first, lines in line_blocks(file):
        yield from enumerate(lines, start=first)


def _blank(file: TextFile) -> CseError:
    return CseError("the file holds nothing but blank lines", where=file.name)


def _place(file: TextFile, line: int) -> str:
    return f"{file.name}, line {line}"


def _header(names: list[str], file: TextFile) -> list[str]:
    columns = [name.strip() for name in names]
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise CseError(
            f"the header has the column {twice[0]!r} twice",
            where=file.name,
            hint="name each column once",
        )
    return columns


def _row(values: list[str], columns: list[str], line: int, file: TextFile) -> Row:
    if len(values) != len(columns):
        raise CseError(
            f"{len(values)} fields where the header has {len(columns)}",
            where=_place(file, line),
            hint=f"the columns are {', '.join(columns)[:80]}",
        )
    return _place(file, line), dict(zip(columns, values, strict=True))


def _tsv(file: TextFile) -> tuple[list[str], Iterator[Row]]:
    lines = ((number, line) for number, line in _lines(file) if line.strip())
    header = next(lines, None)
    if header is None:
        raise _blank(file)
    columns = _header(header[1].split("\t"), file)
    return columns, (_row(line.split("\t"), columns, number, file) for number, line in lines)


def _csv(file: TextFile) -> tuple[list[str], Iterator[Row]]:
    records = _csv_records(file)
    header = next(records, None)
    if header is None:
        raise _blank(file)
    columns = _header(header[1], file)
    if len(columns) == 1 and "\t" in columns[0]:
        raise CseError(
            "the header has tabs and no commas", where=file.name, hint="name the file *.tsv"
        )
    return columns, (_row(values, columns, number, file) for number, values in records)


def _csv_records(file: TextFile) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader((line + "\n" for _, line in _lines(file)), strict=True)
    start = 1
    while True:
        try:
            values = next(reader, None)
        except csv.Error as error:
            raise CseError(
                f"not well-formed csv: {error}",
                where=_place(file, start),
                hint='a field with a comma or a quote stands in "…", a quote in it is ""',
            ) from None
        if values is None:
            return
        if any(value.strip() for value in values):
            yield start, values
        start = reader.line_num + 1


def _jsonl(file: TextFile) -> tuple[list[str], Iterator[Row]]:
    def rows() -> Iterator[Row]:
        for number, line in _lines(file):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise CseError(f"not JSON: {error}", where=_place(file, number)) from None
            if not isinstance(value, dict):
                raise CseError(
                    "not an object",
                    where=_place(file, number),
                    hint='write one {"column": value, …} on each line',
                )
            yield _place(file, number), value

    first = next(rows(), None)
    if first is None:
        raise _blank(file)
    return list(first[1]), rows()


def _parquet(file: TextFile) -> tuple[list[str], Iterator[Row]]:
    import pyarrow
    import pyarrow.parquet

    with open_bytes(file) as source:
        data = source.read()
    try:
        table = pyarrow.parquet.read_table(io.BytesIO(data))
    except (pyarrow.ArrowException, OSError) as error:
        raise CseError(f"the file is not whole parquet data: {error}", where=file.name) from None
    columns = _header(list(table.column_names), file)

    def rows() -> Iterator[Row]:
        first = 1
        for batch in table.to_batches():
            for number, row in enumerate(batch.to_pylist(), start=first):
                yield f"{file.name}, row {number}", row
            first += batch.num_rows

    return columns, rows()
