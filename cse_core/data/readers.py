"""Files of every kind as Arrow tables with columns of text.

A reader holds some megabytes at a time. What it drops or leaves out it notes in a ``Reading``.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from cse_core.data.articles import Unit
from cse_core.data.files import TextFile, check_growth, line_blocks, open_bytes
from cse_core.data.tables import Reading, arrow_text, record_tables, text_table
from cse_core.errors import CseError

if TYPE_CHECKING:
    import pyarrow as pa

_FIELD_LIMIT = 2**31 - 1


def _read_separated(file: TextFile, unit: Unit, reading: Reading) -> Iterator[Any]:
    reading.from_header = True
    records = separated(file, reading)
    names = next(records, (0, []))[1]
    while rows := [fields for _, fields in islice(records, reading.batch)]:
        yield _row_table(names, rows)
    yield _row_table(names, [])


def separated(file: TextFile, reading: Reading) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a tsv or csv file that are not blank, the header first.

    Yields:
        The number of a record's first line, and its fields, as many as the header has.
    """
    names: list[str] = []
    tsv = ((number, line.split("\t")) for number, line in _lines(file, reading))
    for number, fields in tsv if file.format == "tsv" else _csv(file, reading):
        if not any(map(str.strip, fields)):
            reading.blank += 1
        elif not names:
            names = [name.strip() for name in fields]
            twice = sorted({name for name in names if name and names.count(name) > 1})
            if twice:
                what = f"the header has the column {twice[0]!r} twice"
                hint = "the first line is the header: name each column once"
                raise CseError(what, where=f"{file.name}, line 1", hint=hint)
            yield number, names
        elif len(fields) != len(names):
            tabs = file.format == "tsv"
            raise CseError(
                f"{len(fields)} fields where the header has {len(names)} ({', '.join(names)[:80]})",
                where=f"{file.name}, line {number}",
                hint="separate fields by tabs; quotes have no meaning"
                if tabs
                else 'separate fields by commas; put a field that has a comma in "…"',
            )
        else:
            yield number, fields


def _lines(file: TextFile, reading: Reading) -> Iterator[tuple[int, str]]:
    for first, lines in line_blocks(file, block=reading.block):
        yield from enumerate(lines, first)


def _csv(file: TextFile, reading: Reading) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(max(csv.field_size_limit(), _FIELD_LIMIT))
    records = csv.reader((line + "\n" for _, line in _lines(file, reading)), strict=True)
    start = 1
    try:
        for record in records:
            yield start, record
            start = records.line_num + 1
    except csv.Error as error:
        raise CseError(
            f"broken csv: {error}",
            where=f"{file.name}, line {start}",
            hint='a field with a comma, a quote or a line end stands in "…", '
            'and a quote in it is written ""',
        ) from error


def _row_table(names: list[str], rows: list[list[str]]) -> pa.Table:
    columns: list[tuple[str, ...]] = list(zip(*rows, strict=True)) or [() for _ in names]
    return text_table({name: column for name, column in zip(names, columns, strict=True) if name})


def json_lines(file: TextFile, reading: Reading) -> Iterator[tuple[str, Any]]:
    """Yield the place and the value of each line that is not blank."""
    for number, line in _lines(file, reading):
        if not line.strip():
            reading.blank += 1
            continue
        where = f"{file.name}, line {number}"
        try:
            yield where, json.loads(line)
        except (ValueError, RecursionError) as error:
            what = f"not valid JSON: {_json_problem(error)}"
            hint = 'write one object per line: {"text": "…"}'
            raise CseError(what, where=where, value=line[:40], hint=hint) from error


def _read_json(file: TextFile, unit: Unit, reading: Reading) -> Iterator[Any]:
    """Read JSON lines, or one array of objects."""
    lines = _lines(file, Reading.peek(file.name))
    opening = next((line.lstrip() for _, line in lines if line.strip()), "")
    if not opening.startswith("["):
        yield from record_tables(json_lines(file, reading), unit, reading)
        return
    try:
        values = json.loads("\n".join(line for _, line in _lines(file, reading)))
    except (ValueError, RecursionError) as error:
        what = f"not valid JSON: {_json_problem(error, lines=True)}"
        hint = "write an array of objects, or one object per line"
        raise CseError(what, where=file.name, hint=hint) from error
    where = f"{file.name}, object "
    yield from record_tables(((f"{where}{n}", v) for n, v in enumerate(values, 1)), unit, reading)


def _json_problem(error: Exception, *, lines: bool = False) -> str:
    if not isinstance(error, json.JSONDecodeError):
        return "too deeply nested" if isinstance(error, RecursionError) else str(error)
    line = f"line {error.lineno}, " if lines else ""
    return f"{error.msg} at {line}column {error.colno}"


def parquet_tables(
    file: TextFile, reading: Reading, convert: Callable[[Any], Any] = lambda table: table
) -> Iterator[Any]:
    """Yield a parquet file as ``pyarrow.Table``s, first an empty one with its columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_bytes(file) as source:
        data = io.BytesIO(source.read()) if file.gzipped else source
        try:
            whole = pq.ParquetFile(data)
            about = whole.metadata
            sizes = (about.row_group(n).total_byte_size for n in range(about.num_row_groups))
            packed = data.seek(0, io.SEEK_END)
            check_growth(file.name, packed, max(about.num_rows, sum(sizes)))
            yield convert(whole.schema_arrow.empty_table())
            for batch in whole.iter_batches(batch_size=reading.batch):
                batch.validate(full=True)
                yield convert(pa.Table.from_batches([batch]))
        except (pa.ArrowException, OSError) as error:
            hint = "copy, download or write it again"
            what = f"not a complete parquet file: {error}"
            raise CseError(what, where=file.name, hint=hint) from error


READERS: dict[str, Callable[[TextFile, Unit, Reading], Iterator[Any]]] = {
    "txt": lambda file, unit, reading: (
        text_table({"text": lines}) for _, lines in line_blocks(file, block=reading.block)
    ),
    "tsv": _read_separated,
    "csv": _read_separated,
    "jsonl": lambda file, unit, reading: record_tables(json_lines(file, reading), unit, reading),
    "json": _read_json,
    "parquet": lambda file, unit, reading: parquet_tables(
        file, reading, partial(arrow_text, reading=reading)
    ),
}
"""The rows of a file of each format as ``pyarrow.Table``s of strings; errors name the line."""
