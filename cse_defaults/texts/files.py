"""Text files on disk, compressed or not: their lines, and their rows as Arrow tables of text.

A reader holds some thousand rows at a time. What it drops or leaves out it notes in a ``Reading``.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import re
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from cse_core.errors import CseError, did_you_mean
from cse_core.files import atomic_file, cache_folder, file_sum
from cse_defaults.texts.tables import (
    LARGE,
    MAPPED,
    NUMBER,
    ROWS,
    Reading,
    Unit,
    arrow_text,
    map_tables,
    record_tables,
    text_table,
    write_tables,
)

FORMATS = ("txt", "csv", "tsv", "jsonl", "json", "parquet", "arrow")
"""Endings that can be read, each also with one of ``COMPRESSIONS`` behind it."""
COMPRESSIONS = ("gz", "zst")
"""How compressed files end; their first bytes say which they are."""
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
SAVED = ("state.json", "dataset_dict.json")
"""What tells a folder that ``save_to_disk`` of the library datasets wrote: of one set, of splits"""
_APART = re.compile(r"[\w.-]+(?: [\w.-]+)*(?:([;\t])[\w.-]+(?: [\w.-]+)*)+")
_MARKS = {"UTF-32": (b"\xff\xfe\0\0", b"\0\0\xfe\xff"), "UTF-16": (b"\xff\xfe", b"\xfe\xff")}
_FIELD_LIMIT = 2**31 - 1
_MAX_LINE = 2**28
_LOOKED_AT = 1000
_FORM = 1
_HOUR = 3_600
_IN_QUOTES = 'a field with a comma, a quote or a line end stands in "…", a quote in it is doubled'


if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class TextFile:
    """A file of texts that is there; its name is as the user gave it.

    A folder that ``save_to_disk`` wrote has the format ``saved``.
    """

    name: str
    path: Path
    format: str


def format_of(name: str) -> str | None:
    """Return the format by the ending of a file's name, None where it is unknown."""
    endings = name.lower().split(".")[1:]
    if endings and endings[-1] in COMPRESSIONS:
        endings.pop()
    return endings[-1] if endings and endings[-1] in FORMATS else None


def open_file(name: str, path: Path) -> TextFile:
    """Return the file at a path."""
    if not name.strip():
        raise CseError("the file name is empty", hint="name a file")
    try:
        if is_saved(path):
            return TextFile(name, path, "saved")
        if not path.is_file():
            raise _no_file(name, path)
    except OSError as error:
        raise read_error(name, error) from error
    known = format_of(path.name)
    if known is None:
        endings = ", ".join(f".{ending}" for ending in FORMATS)
        hint = f"these are read: {endings}, each also with .gz or .zst; convert it to one of them"
        raise CseError("unknown file type", where=name, value=path.suffix, hint=hint)
    return TextFile(name, path, known)


def is_saved(path: Path) -> bool:
    """Tell whether a folder holds what ``save_to_disk`` of the library datasets wrote."""
    return any((path / saved).is_file() for saved in SAVED)


def loadable_names(folder: Path) -> list[str]:
    """Return the names of files in a folder that have a known ending."""
    try:
        return sorted(entry.name for entry in folder.iterdir() if format_of(entry.name))
    except OSError:
        return []


def _no_file(name: str, path: Path) -> CseError:
    if path.is_dir():
        names = ", ".join(loadable_names(path)[:6])
        hint = f"name a file in it: {names}" if names else "no file in it can be read"
        return CseError("is a folder, not a file", where=name, hint=hint)
    if path.exists():
        what = "is a pipe, socket or device, not a file"
        return CseError(what, where=name, hint="write its texts to a file first")
    hint = f"folder {path.parent} does not exist"
    if path.parent.is_dir():
        hint = f"in folder {path.parent}: {did_you_mean(path.name, loadable_names(path.parent))}"
    return CseError("no such file", where=name, hint=hint)


def read_error(name: str, error: Exception) -> CseError:
    """Turn an error of the operating system into one line."""
    if isinstance(error, PermissionError):
        hint = "make it readable: chmod +r FILE"
        return CseError("permission denied", where=name, hint=hint)
    return CseError(f"cannot be read: {getattr(error, 'strerror', None) or error}", where=name)


@contextmanager
def open_bytes(file: TextFile) -> Iterator[IO[bytes]]:
    """Open a file for its uncompressed bytes; what fails while they are read is a ``CseError``."""
    try:
        with open(file.path, "rb") as raw:
            magic = raw.read(4)
            raw.seek(0)
            if not magic:
                raise CseError("the file is empty", where=file.name, hint="name a file with texts")
            if magic.startswith(_GZIP):
                yield io.BufferedReader(gzip.GzipFile(fileobj=raw))
            elif magic == _ZSTD:
                import pyarrow as pa

                yield io.BufferedReader(pa.CompressedInputStream(raw, "zstd"))
            else:
                yield raw
    except (EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # which damages have not
            raise read_error(file.name, error) from error
        what = f"the compressed file is cut short or damaged ({error})"
        hint = "copy or download it again"
        raise CseError(what, where=file.name, hint=hint) from error


def file_lines(file: TextFile) -> Iterator[str]:
    """Yield the lines of a UTF-8 file as ``text_lines`` does, and raise what that raises."""
    with open_bytes(file) as source:
        yield from text_lines(source, file.name, -1 if file.format == "json" else _MAX_LINE)


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


def _filled(lines: Iterator[str], reading: Reading) -> Iterator[str]:
    """Yield the lines that are not blank, and count the others."""
    for line in lines:
        if reading.exact or line.strip():
            yield line
        else:
            reading.blank += 1


def separated(file: TextFile, reading: Reading) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the place and the fields by column of each record of a tsv or csv file.

    Blank ones are passed over; an exact reading passes over blank lines beside several columns.
    """
    reading.from_header = True
    csv.field_size_limit(max(csv.field_size_limit(), _FIELD_LIMIT))
    names: list[str] = []
    tabs = file.format == "tsv"
    quoted = not tabs or _is_quoted(file)
    if tabs and quoted:
        reading.say("its fields stand in quotes, which are left out")
    lines = (line + "\n" for line in file_lines(file))
    records = csv.reader(
        lines,
        delimiter="\t" if tabs else ",",
        quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        strict=True,
    )
    begin = 1
    try:
        for fields in records:
            where, count = f"{file.name}, line {begin}", len(names)
            begin = records.line_num + 1
            if not any(map(str.strip, fields)):
                if reading.exact and count and count in (1, len(fields)):
                    yield where, dict.fromkeys(names, "")
                else:
                    reading.blank += 1
            elif not names:
                names = [name.strip() for name in fields]
                if not names[1:] and (apart := _APART.fullmatch(names[0])):
                    known = "tabs" if file.format == "tsv" else "commas"
                    hint = "name the file *.tsv" if apart[1] == "\t" else f"write them with {known}"
                    raise CseError(f"fields stand apart by {apart[1]!r}", where=where, hint=hint)
                twice = sorted({name for name in names if name and names.count(name) > 1})
                if twice:
                    what = f"the header has the column {twice[0]!r} twice"
                    hint = "the first line is the header: name each column once"
                    raise CseError(what, where=where, hint=hint)
            elif len(fields) != count:
                known = ", ".join(names)[:80]
                what = f"{len(fields)} fields where the header has {count} ({known})"
                hint = "separate fields by tabs; quotes have no meaning"
                raise CseError(what, where=where, hint=_IN_QUOTES if quoted else hint)
            else:
                yield where, {n: field for n, field in zip(names, fields, strict=True) if n}
    except csv.Error as error:
        where = f"{file.name}, line {begin}"
        raise CseError(f"broken csv: {error}", where=where, hint=_IN_QUOTES) from error


def _is_quoted(file: TextFile) -> bool:
    """Tell whether fields of a tsv file are written with quotes, as its first lines show.

    All that are no numbers stand in quotes, or one does and has doubled ones inside.
    """
    lines = islice(file_lines(file), 1, _LOOKED_AT)
    fields = [field for line in lines for field in line.split("\t") if field.strip()]
    texts = [field for field in fields if not NUMBER.fullmatch(field)]
    within = [text[1:-1] for text in texts if len(text) > 1 and text[0] == text[-1] == '"']
    doubled = any('""' in each and '"' not in each.replace('""', "") for each in within)
    return doubled or len(within) == len(texts) > 0


def json_lines(file: TextFile, reading: Reading) -> Iterator[tuple[str, Any]]:
    """Yield the place and the value of each line that is not blank."""
    for number, line in enumerate(file_lines(file), 1):
        if line.strip():
            yield (where := f"{file.name}, line {number}"), _parsed(line, where)
        else:
            reading.blank += 1


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        nested = isinstance(error, RecursionError)
        what = f"not valid JSON: {'too deeply nested' if nested else error}"
        hint = 'write one object per line: {"text": "…"}'
        raise CseError(what, where=where, value=text[:40], hint=hint) from error


def json_values(file: TextFile, reading: Reading) -> Iterator[tuple[str, Any]]:
    """Yield the place and the value of each line, or of each item of one array."""
    opening = next((line.lstrip() for line in file_lines(file) if line.strip()), "")
    if not opening.startswith("["):
        return json_lines(file, reading)
    values = _parsed("\n".join(file_lines(file)), file.name)
    return ((f"{file.name}, object {n}", value) for n, value in enumerate(values, 1))


RECORDS: dict[str, Callable[[TextFile, Reading], Iterator[tuple[str, Any]]]] = {
    "tsv": separated, "csv": separated, "jsonl": json_lines, "json": json_values,
}  # fmt: skip
"""The places and values of the rows of a text file with named values."""


def arrow_tables(file: TextFile) -> Iterator[Any]:
    """Yield a parquet or arrow file as ``pyarrow.Table``s, first an empty one with its columns.

    So is a folder that ``save_to_disk`` wrote; of one with splits those of ``train``.
    """
    import pyarrow as pa

    if file.format == "saved":
        yield from _saved_tables(file)
        return
    with open_bytes(file) as source:
        plain = isinstance(getattr(source, "raw", None), io.FileIO)
        data = source if plain else io.BytesIO(source.read())  # which is read here and there
        try:
            schema, batches = _batches(data, file.format)
            yield schema.empty_table()
            for batch in batches:
                batch.validate(full=True)
                yield pa.Table.from_batches([batch])
        except (pa.ArrowException, OSError) as error:
            hint = "copy, download or write it again"
            what = f"not a complete {file.format} file: {error}"
            raise CseError(what, where=file.name, hint=hint) from error


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


def _saved_tables(file: TextFile) -> Iterator[Any]:
    import datasets

    try:
        found = datasets.load_from_disk(str(file.path))
    except Exception as error:  # of several libraries; all mean that it is not whole
        what = f"cannot be read as a data set that save_to_disk wrote: {error}"
        raise CseError(what, where=file.name, hint="save it again") from error
    if isinstance(found, datasets.DatasetDict):
        if "train" not in found:
            hint = f"name one of its splits: {', '.join(str(file.path / name) for name in found)}"
            raise CseError("has no split train", where=file.name, hint=hint)
        found = found["train"]
    yield from found.with_format("arrow").iter(batch_size=ROWS)


def read_rows(file: TextFile, unit: Unit, reading: Reading) -> Iterator[Any]:
    """Return the rows of a file as ``pyarrow.Table``s of strings; errors name the line."""
    if file.format == "txt":
        batches = reading.batches(_filled(file_lines(file), reading))
        return (text_table({"text": batch}) for batch in batches)
    if file.format in RECORDS:
        return record_tables(RECORDS[file.format](file, reading), unit, reading)
    return (arrow_text(table, reading) for table in reading.first(arrow_tables(file)))


def file_tables(file: TextFile, unit: Unit, reading: Reading) -> Iterator[Any]:
    """Yield the rows of a file as ``pyarrow.Table``s of strings, those of a large one mapped.

    They are then kept in the cache, named by a hash of all that they are made of. Where they cannot
    be written, a message says so.
    """
    cache = cache_folder()
    if file.format != "saved" and cache is not None:
        try:
            if file.path.stat().st_size >= LARGE:
                about = _FORM, file.format, unit, reading.limit, reading.exact, file_sum(file.path)
                name = hashlib.sha256(repr(about).encode()).hexdigest()[:40]
                return iter(_kept_tables(cache / MAPPED / f"{name}.arrow", file, unit, reading))
        except OSError as error:
            why = error.strerror or error
            reading.say(f"its texts are held in memory, not in {cache / MAPPED}: {why}")
    return read_rows(file, unit, reading)


def _kept_tables(path: Path, file: TextFile, unit: Unit, reading: Reading) -> list[pa.Table]:
    """Return the tables of a file of the cache; it is written where it is not there, whole."""
    import pyarrow as pa

    def kept() -> list[pa.Table]:
        with path.open("rb") as whole:
            *tables, last = map_tables(whole)
        noted = json.loads((last.schema.metadata or {}).get(b"noted", ""))
        noted["messages"] = [reading.name + line for line in noted["messages"]]
        vars(reading).update(noted)
        return tables

    with suppress(OSError, ValueError, KeyError):  # missing, damaged, or of another form
        return kept()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # its files tell the texts
    with suppress(OSError):  # another process may do the same
        for left in path.parent.glob(".*"):  # by a process that was killed
            if time.time() - left.stat().st_mtime > _HOUR:
                left.unlink()
    seen = replace(reading, left_out={}, messages=[])
    with atomic_file(path, private=True) as beside, beside.open("wb") as into:
        write_tables(into, read_rows(file, unit, seen))
        noted = {name: new for name, new in vars(seen).items() if new != vars(reading)[name]}
        noted["messages"] = [line.removeprefix(seen.name) for line in seen.messages]
        write_tables(into, [pa.schema([], {"noted": json.dumps(noted)}).empty_table()])
    return kept()
