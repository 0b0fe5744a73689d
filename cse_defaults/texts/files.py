"""Text files on disk, compressed or not: their lines, and sources of their rows."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from cse_core.errors import CseError
from cse_core.files import open_bytes
from cse_core.registry.names import unpacked
from cse_core.texts import Seen, Wanted
from cse_defaults.texts.tables import ROWS, batched, text_table

SAVED = ("state.json", "dataset_dict.json")
"""What tells a folder that ``save_to_disk`` of the library datasets wrote: of one set, of splits"""
_APART = re.compile(r"[\w.-]+(?: [\w.-]+)*(?:([;\t])[\w.-]+(?: [\w.-]+)*)+")
_MARKS = {"UTF-32": (b"\xff\xfe\0\0", b"\0\0\xfe\xff"), "UTF-16": (b"\xff\xfe", b"\xfe\xff")}
_FIELD_LIMIT = 2**31 - 1
_MAX_LINE = 2**28
_IN_QUOTES = 'a field with a comma, a quote or a line end stands in "…", a quote in it is doubled'
_QUOTED = (
    "fields stand in quotes, which belong to the texts: ?quotes=yes behind its name removes them"
)
_AS_OBJECTS = 'write one object per line: {"text": "…"}'

if TYPE_CHECKING:
    import pyarrow as pa


def is_saved(name: str | Path) -> bool:
    """Tell whether a folder holds what ``save_to_disk`` of the library datasets wrote."""
    return any((Path(name).expanduser() / saved).is_file() for saved in SAVED)


def file_lines(name: str, longest: int = _MAX_LINE) -> Iterator[str]:
    """Yield the lines of a UTF-8 file as ``text_lines`` does, and raise what that raises."""
    with open_bytes(name) as source:
        yield from text_lines(source, name, longest)


def text_lines(source: IO[bytes], name: str, longest: int = _MAX_LINE) -> Iterator[str]:
    r"""Yield the lines of UTF-8 bytes, without their ends.

    ``\n``, ``\r\n`` and a lone ``\r`` end a line; other separators of Unicode do not. A line that
    is not UTF-8, holds NUL bytes or has ``longest`` characters, where that is not -1, is refused by
    its number.
    """
    text, number = io.TextIOWrapper(source, "utf-8-sig"), 0

    def refused(what: str, hint: str, value: bytes | None = None) -> CseError:
        return CseError(what, where=f"{name}, line {number}", value=value, hint=hint)

    try:
        while line := text.readline(longest):
            number += 1
            if "\0" in line:
                hint = "name a text file, or remove the bytes: tr -d '\\000' < OLD > NEW"
                raise refused("contains a NUL byte, so it is not text", hint)
            if len(line) == longest:
                what = f"a line of more than {longest:,} characters"
                raise refused(what, "write one text per line")
            yield line.removesuffix("\n")
    except UnicodeDecodeError as error:
        number += 1 + error.object.count(b"\n", 0, error.start)  # of the block that is decoded
        for other, marks in _MARKS.items():
            if error.object.startswith(marks):
                hint = f"convert it: iconv -f {other} -t UTF-8 OLD > NEW"
                raise refused(f"not UTF-8 but {other}", hint) from error
        if b"\0" in error.object or error.object.startswith(b"BZh"):
            raise refused("is not a text file", "name a text in UTF-8") from error
        hint = "convert it, for example: iconv -f LATIN1 -t UTF-8 OLD > NEW"
        raise refused("not UTF-8", hint, error.object[error.start : error.end]) from error
    finally:
        text.detach()


class Lines:
    """Texts of a txt file, one a line."""

    def __init__(self) -> None:
        self.seen = Seen(unnamed=True)

    def rows(self, name: str, wanted: Wanted) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield the lines."""
        for number, line in enumerate(file_lines(name), 1):
            yield f"{name}, row {number}", {"text": line}

    def tables(self, name: str, wanted: Wanted) -> Iterator[pa.Table]:
        """Yield the same as tables, which takes half the time."""
        for batch in batched(file_lines(name), wanted.limit):
            yield text_table({"text": batch})


class Separated:
    """Fields of a csv file, or a tsv file, under the names of its first line."""

    def __init__(self) -> None:
        self.seen = Seen(from_header=True)

    def rows(self, name: str, wanted: Wanted) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield the place and the fields by column of each record of a tsv or csv file.

        Fields of a csv file may stand in quotes; those of a tsv file are taken as they are, unless
        ``quotes=yes`` stands behind its name. An empty line is a row of a single column alone.
        """
        csv.field_size_limit(max(csv.field_size_limit(), _FIELD_LIMIT))
        tabs = unpacked(name).endswith(".tsv")
        quotes = wanted.options.get("quotes", "no" if tabs else "yes")
        if quotes not in ("yes", "no"):
            raise CseError("is neither yes nor no", where=name, value=quotes, hint="?quotes=yes")
        records = csv.reader(
            (line + "\n" for line in file_lines(name)),
            delimiter="\t" if tabs else ",",
            quoting=csv.QUOTE_MINIMAL if quotes == "yes" else csv.QUOTE_NONE,
            strict=True,
        )
        names: list[str] = []
        begin, raw = 1, quotes == "no"
        try:
            for fields in records:
                where, begin = f"{name}, line {begin}", records.line_num + 1
                filled, fields = any(map(str.strip, fields)), fields or [""]
                if not names:
                    names = _header(fields, where, tabs) if filled else []
                elif len(fields) == len(names):
                    if raw and any(field[:1] == field[-1:] == '"' for field in fields):
                        self.seen.messages.append(_QUOTED)
                    raw = False
                    yield where, {n: field for n, field in zip(names, fields, strict=True) if n}
                elif filled:
                    columns = ", ".join(names)[:80]
                    what = f"{len(fields)} fields where the header has {len(names)} ({columns})"
                    hint = "separate fields by tabs; quotes have no meaning"
                    hint = _IN_QUOTES if quotes == "yes" else hint
                    raise CseError(what, where=where, hint=hint)
        except csv.Error as error:
            where = f"{name}, line {begin}"
            raise CseError(f"broken csv: {error}", where=where, hint=_IN_QUOTES) from error


def _header(fields: list[str], where: str, tabs: bool) -> list[str]:
    """Read the names of the columns."""
    names = [field.strip() for field in fields]
    if not names[1:] and (apart := _APART.fullmatch(names[0])):
        hint = f"write them with {'tabs' if tabs else 'commas'}"
        hint = "name the file *.tsv" if apart[1] == "\t" else hint
        raise CseError(f"fields stand apart by {apart[1]!r}", where=where, hint=hint)
    if twice := next((name for name in names if name and names.count(name) > 1), None):
        what = f"the header has the column {twice!r} twice"
        hint = "the first line is the header: name each column once"
        raise CseError(what, where=where, hint=hint)
    return names


class Json:
    """Objects of a jsonl file, one a line, or those of one array."""

    def rows(self, name: str, wanted: Wanted) -> Iterator[tuple[str, Any]]:
        """Yield the value of each line that is not blank, or of each item of the array."""
        if not unpacked(name).endswith(".json"):
            lines = file_lines(name)
        else:
            text = "\n".join(file_lines(name, longest=-1))
            if text.lstrip().startswith("["):
                for number, value in enumerate(_parsed(text, name), 1):
                    yield f"{name}, object {number}", value
                return
            lines = iter(text.split("\n"))
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield (where := f"{name}, line {number}"), _parsed(line, where)


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        nested = isinstance(error, RecursionError)
        what = f"not valid JSON: {'too deeply nested' if nested else error}"
        raise CseError(what, where=where, value=text[:40], hint=_AS_OBJECTS) from error


class Arrow:
    """Columns of a parquet or arrow file."""

    def rows(self, name: str, wanted: Wanted) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the rows, values as they are."""
        values = (row for table in self.tables(name, wanted) for row in table.to_pylist())
        return ((f"{name}, row {n}", row) for n, row in enumerate(values, 1))

    def tables(self, name: str, wanted: Wanted) -> Iterator[pa.Table]:
        """Yield its batches of rows, first an empty one with the columns."""
        import pyarrow as pa

        form = Path(unpacked(name)).suffix[1:]
        with open_bytes(name) as source:
            data = source if source.seekable() else io.BytesIO(source.read())
            try:
                schema, batches = _batches(data, form)
                yield schema.empty_table()
                for batch in batches:
                    batch.validate(full=True)
                    yield pa.Table.from_batches([batch])
            except (pa.ArrowException, OSError) as error:
                hint = "copy, download or write it again"
                what = f"not a complete {form} file: {error}"
                raise CseError(what, where=name, hint=hint) from error


def _batches(data: IO[bytes], form: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the columns and the record batches of a parquet file, an arrow file or a stream."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if form == "parquet":
        whole = pq.ParquetFile(data)
        return whole.schema_arrow, whole.iter_batches(batch_size=ROWS)
    try:
        file = pa.ipc.open_file(data)
    except pa.ArrowInvalid:
        data.seek(0)
        stream = pa.ipc.open_stream(data)
        return stream.schema, iter(stream)
    return file.schema, (file.get_batch(number) for number in range(file.num_record_batches))


class Saved(Arrow):
    """A folder that ``save_to_disk`` wrote; of one with splits that of ``train``."""

    def tables(self, name: str, wanted: Wanted) -> Iterator[pa.Table]:
        """Yield its rows."""
        import datasets

        path = Path(name).expanduser()
        try:
            rows = datasets.load_from_disk(str(path))
        except Exception as error:  # of several libraries; all mean that it is not whole
            what = f"cannot be read as a data set that save_to_disk wrote: {error}"
            raise CseError(what, where=name, hint="save it again") from error
        if isinstance(rows, datasets.DatasetDict):
            if wanted.split not in rows:
                hint = f"name one of its splits: {', '.join(str(path / split) for split in rows)}"
                raise CseError(f"has no split {wanted.split}", where=name, hint=hint)
            rows = rows[wanted.split]
        yield from rows.with_format("arrow").iter(batch_size=ROWS)
