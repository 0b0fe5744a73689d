"""Files of every kind as a stream of Arrow tables with columns of text, under the file's own names.

A reader holds some megabytes at a time. What it drops or leaves out it notes in a ``Reading``.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from cse_core.data.articles import Unit
from cse_core.data.files import TextFile, line_blocks, open_bytes
from cse_core.data.tables import Reading, arrow_text, record_tables, text_table
from cse_core.errors import CseError

if TYPE_CHECKING:
    import pyarrow as pa

_FIELD_LIMIT = 2**31 - 1


def read_file(file: TextFile, unit: Unit, reading: Reading) -> Iterator[Any]:
    """Yield the rows of a file as ``pyarrow.Table``s of strings.

    Args:
        file: The file.
        unit: What a row of an article is.
        reading: Takes notes.

    Raises:
        CseError: The file cannot be read, with the line where it is wrong.
    """
    return _READERS[file.format](file, unit, reading)


def _read_txt(file: TextFile, unit: Unit, reading: Reading) -> Iterator[Any]:
    for _, lines in line_blocks(file, block=reading.block):
        yield text_table({"text": lines})


def _read_tsv(file: TextFile, unit: Unit, reading: Reading) -> Iterator[Any]:
    reading.from_header = True
    names: list[str] = []
    for first, lines in line_blocks(file, block=reading.block):
        rows: list[list[str]] = []
        for number, line in enumerate(lines, first):
            if not line.strip():
                reading.blank += 1
            elif not names:
                names = _header(file, line.split("\t"))
            else:
                fields = line.split("\t")
                if len(fields) != len(names):
                    raise _ragged(file, number, len(fields), names)
                rows.append(fields)
        yield _row_table(names, rows)


def _read_csv(file: TextFile, unit: Unit, reading: Reading) -> Iterator[Any]:
    reading.from_header = True
    if csv.field_size_limit() < _FIELD_LIMIT:
        csv.field_size_limit(_FIELD_LIMIT)
    lines = (line + "\n" for _, lines in line_blocks(file, block=reading.block) for line in lines)
    records = csv.reader(lines, strict=True)
    names: list[str] = []
    rows: list[list[str]] = []
    start = 1
    while True:
        try:
            record = next(records, None)
        except csv.Error as error:
            raise CseError(
                f"broken csv: {error}",
                where=f"{file.name}, line {start}",
                hint='a field with a comma, a quote or a line end stands in "…", '
                'and a quote in it is written ""',
            ) from error
        if record is None:
            break
        if not any(map(str.strip, record)):
            reading.blank += 1
        elif not names:
            names = _header(file, record)
        elif len(record) != len(names):
            raise _ragged(file, start, len(record), names)
        else:
            rows.append(record)
            if len(rows) == reading.batch:
                yield _row_table(names, rows)
                rows = []
        start = records.line_num + 1
    yield _row_table(names, rows)


def _header(file: TextFile, fields: list[str]) -> list[str]:
    names = [name.strip() for name in fields]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise CseError(
            "two columns of one name",
            where=f"{file.name}, line 1",
            value=twice[0],
            hint="the first line is the header: name each column once",
        )
    return names


def _row_table(names: list[str], rows: list[list[str]]) -> pa.Table:
    columns: list[tuple[str, ...]] = list(zip(*rows, strict=True)) or [() for _ in names]
    return text_table({name: column for name, column in zip(names, columns, strict=True) if name})


def _ragged(file: TextFile, number: int, fields: int, names: list[str]) -> CseError:
    separator = "a tab" if file.format == "tsv" else "a comma"
    return CseError(
        f"{fields} fields where the header has {len(names)} ({', '.join(names)[:80]})",
        where=f"{file.name}, line {number}",
        hint=f"{separator} stands between two fields; "
        + ("quotes mean nothing" if file.format == "tsv" else 'a field with a comma is in "…"'),
    )


def _read_json_lines(file: TextFile, unit: Unit, reading: Reading) -> Iterator[Any]:
    def records() -> Iterator[tuple[str, Any]]:
        for first, lines in line_blocks(file, block=reading.block):
            for number, line in enumerate(lines, first):
                if not line.strip():
                    reading.blank += 1
                    continue
                where = f"{file.name}, line {number}"
                try:
                    yield where, json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise CseError(
                        f"no JSON: {_json_problem(error)}",
                        where=where,
                        value=line[:40],
                        hint='one object a line is due: {"text": "…"}',
                    ) from error

    return record_tables(records(), unit, reading)


def _read_json(file: TextFile, unit: Unit, reading: Reading) -> Iterator[Any]:
    """Read JSON lines, or one array of objects."""
    lines = (line for _, part in line_blocks(file, block=1 << 16) for line in part)
    opening = next((line.lstrip() for line in lines if line.strip()), "")
    if not opening.startswith("["):
        yield from _read_json_lines(file, unit, reading)
        return
    text = "\n".join(line for _, part in line_blocks(file) for line in part)
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CseError(
            f"no JSON: {_json_problem(error, lines=True)}",
            where=file.name,
            hint="an array of objects, or one a line, is due",
        ) from error
    where = f"{file.name}, object "
    yield from record_tables(((f"{where}{n}", v) for n, v in enumerate(values, 1)), unit, reading)


def _json_problem(error: Exception, *, lines: bool = False) -> str:
    if not isinstance(error, json.JSONDecodeError):
        return "too deeply nested" if isinstance(error, RecursionError) else str(error)
    line = f"line {error.lineno}, " if lines else ""
    return f"{error.msg} at {line}column {error.colno}"


def _read_parquet(file: TextFile, unit: Unit, reading: Reading) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_bytes(file) as source:
        data = io.BytesIO(source.read()) if file.gzipped else source
        try:
            for batch in pq.ParquetFile(data).iter_batches(batch_size=reading.batch):
                batch.validate(full=True)
                yield arrow_text(pa.Table.from_batches([batch]), reading)
        except pa.ArrowException as error:
            raise CseError(
                f"no whole parquet file: {error}",
                where=file.name,
                hint="copy, download or write it again",
            ) from error


_READERS: dict[str, Callable[[TextFile, Unit, Reading], Iterator[Any]]] = {
    "txt": _read_txt,
    "tsv": _read_tsv,
    "csv": _read_csv,
    "jsonl": _read_json_lines,
    "json": _read_json,
    "parquet": _read_parquet,
}
