"""Rows to a file of the format that its name says."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, cast

from cse_core.data.files import format_of
from cse_core.errors import CseError, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

WRITTEN = ("jsonl", "csv", "tsv", "parquet")
"""Formats that rows are written in, each also with ``.gz`` behind it."""
_BATCH = 10_000
_BREAKS = re.compile(r"[\t\r\n]+")


def written_format(name: str, *, where: str = "--out") -> tuple[str, bool]:
    """Return format and compression by the ending of a file's name.

    Raises:
        CseError: If rows are not written in a file of this name.
    """
    known = format_of(name)
    if known is None or known[0] not in WRITTEN:
        endings = [f".{ending}" for ending in WRITTEN]
        ending = "." + name.lower().removesuffix(".gz").rpartition(".")[2] if "." in name else ""
        close = did_you_mean(ending, endings)
        raise CseError(
            "unknown file type for rows",
            where=where,
            value=name,
            hint=close
            if close.startswith("did")
            else f"name it {', '.join('*' + ending for ending in endings)} (each also .gz)",
        )
    return known


def write_rows(table: pa.Table, file: IO[bytes], name: str) -> None:
    """Write a table of texts; ``load_corpus`` reads the same rows from it.

    Tabs and line breaks inside a text become spaces in a tsv file, which has no quoting. Equal
    rows give equal bytes.

    Args:
        table: Columns of texts.
        file: An open file.
        name: Its name at the end, which says format and compression.
    """
    kind, gzipped = written_format(name)
    with _packed(file) if gzipped else _as_it_is(file) as packed:
        if kind == "parquet":
            import pyarrow.parquet

            pyarrow.parquet.write_table(table, packed)
        elif kind == "jsonl":
            for batch in table.to_batches(_BATCH):
                for row in batch.to_pylist():
                    packed.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
        else:
            _write_lines(table, packed, tabs=kind == "tsv")


def _write_lines(table: pa.Table, file: IO[bytes], *, tabs: bool) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    lines = csv.writer(text, lineterminator="\n")
    for row in _values(table):
        if tabs:
            text.write("\t".join(_BREAKS.sub(" ", value) for value in row) + "\n")
        else:
            lines.writerow(row)
    text.detach()


def _values(table: pa.Table) -> Iterator[list[str]]:
    yield list(table.column_names)
    for batch in table.to_batches(_BATCH):
        for row in batch.to_pylist():
            yield [value or "" for value in row.values()]


@contextmanager
def _packed(file: IO[bytes]) -> Iterator[IO[bytes]]:
    with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
        yield cast("IO[bytes]", packed)


@contextmanager
def _as_it_is(file: IO[bytes]) -> Iterator[IO[bytes]]:
    yield file
