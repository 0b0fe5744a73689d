"""Text files on disk, plain or gzip: what a name's ending means, and blocks of checked lines."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from cse_core.errors import CseError, did_you_mean

FORMATS = ("txt", "csv", "tsv", "jsonl", "json", "parquet")
"""Endings that can be read, each also with ``.gz`` behind it."""
BLOCK = 1 << 22
"""Bytes read at once."""
_GZIP_MAGIC = b"\x1f\x8b"
_SMALL = 2**26
"""Bytes that may be unpacked from any number of bytes."""
_MAX_GROWTH = 100
"""How many times its compressed bytes a larger file may have."""
_MAX_LINE_BYTES = 2**28
_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True)
class TextFile:
    """A file of texts that is there; its name is as the user gave it."""

    name: str
    path: Path
    format: str
    gzipped: bool


def format_of(name: str) -> tuple[str, bool] | None:
    """Return format and compression by the ending of a file's name, None where it is unknown."""
    lowered = name.lower()
    gzipped = lowered.endswith(".gz")
    ending = lowered.removesuffix(".gz").rpartition(".")[2]
    return (ending, gzipped) if "." in lowered and ending in FORMATS else None


def open_file(name: str, path: Path) -> TextFile:
    """Return the file at a path.

    Raises:
        CseError: It is missing, a folder, or of a kind that cannot be read.
    """
    if not name.strip():
        raise CseError("the file name is empty", hint="name a file")
    try:
        if path.is_dir():
            names = loadable_names(path)
            shown = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
            hint = f"name a file in it: {shown}"
            if not names:
                hint = "name a file; none in this folder can be read"
            raise CseError("is a folder, not a file", where=name, hint=hint)
        if not path.exists():
            raise _missing_error(name, path)
        if not path.is_file():
            what = "is a pipe, socket or device, not a file"
            raise CseError(what, where=name, hint="write its texts to a file first")
    except OSError as error:
        raise read_error(name, error) from error
    known = format_of(path.name)
    if known is None:
        endings = ", ".join(f".{ending}" for ending in FORMATS)
        hint = f"supported are {endings}, each also with .gz: rename the file"
        raise CseError("unknown file type", where=name, value=path.suffix, hint=hint)
    return TextFile(name, path, *known)


def loadable_names(folder: Path) -> list[str]:
    """Return the names of files in a folder that have a known ending."""
    try:
        return sorted(entry.name for entry in folder.iterdir() if format_of(entry.name))
    except OSError:
        return []


def _missing_error(name: str, path: Path) -> CseError:
    folder = path.parent
    if not folder.is_dir():
        return CseError("no such file", where=name, hint=f"folder {folder} does not exist")
    names = loadable_names(folder)
    hint = did_you_mean(path.name, names).removeprefix("known: ")
    if len(names) > 12 and not hint.startswith("did"):
        hint = f"{len(names)} other files with texts"
    return CseError("no such file", where=name, hint=f"in folder {folder}: {hint}")


def read_error(name: str, error: OSError) -> CseError:
    """Turn an error of the operating system into one line."""
    if isinstance(error, PermissionError):
        hint = "make it readable: chmod +r FILE"
        return CseError("permission denied", where=name, hint=hint)
    return CseError(f"cannot be read: {error.strerror or error}", where=name)


@contextmanager
def open_bytes(file: TextFile) -> Iterator[IO[bytes]]:
    """Open a file for its uncompressed bytes.

    Raises:
        CseError: It cannot be opened or read, or its compressed bytes are damaged.
    """
    try:
        with open(file.path, "rb") as raw:
            magic = raw.read(2)
            raw.seek(0)
            if not magic:
                raise CseError("the file is empty", where=file.name, hint="name a file with texts")
            if not file.gzipped:
                if magic == _GZIP_MAGIC:
                    what = "compressed with gzip, but its name does not end in .gz"
                    raise CseError(what, where=file.name, hint="add .gz to its name")
                yield raw
                return
            if magic != _GZIP_MAGIC:
                what = "not compressed with gzip, although its name ends in .gz"
                raise CseError(what, where=file.name, hint="remove .gz from its name")
            packed = raw.seek(-4, os.SEEK_END) + 4
            whole = int.from_bytes(raw.read(), "little")  # of a file that is not cut short
            check_growth(file.name, packed, whole if whole < 1100 * packed else 0)
            raw.seek(0)
            with _Unpacked(file.name, "rb", fileobj=raw) as unpacked:
                yield cast("IO[bytes]", unpacked)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        what = f"the compressed file is cut short or damaged ({error})"
        hint = "copy or download it again; `gzip -t FILE` checks it"
        raise CseError(what, where=file.name, hint=hint) from error
    except OSError as error:
        raise read_error(file.name, error) from error


def check_growth(name: str, packed: int, unpacked: int) -> None:
    """Refuse a file that expands beyond all measure: it is not an archive of texts."""
    if unpacked > max(_SMALL, _MAX_GROWTH * packed):
        what = f"{packed:,} compressed bytes grow to {unpacked:,} and more, as no texts do"
        raise CseError(what, where=name, hint="decompress it first if it is what you want to read")


class _Unpacked(gzip.GzipFile):
    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(BLOCK), b""))
        data = super().read(size)
        check_growth(self.name, cast("IO[bytes]", self.fileobj).tell(), self.tell())
        return data


def line_blocks(file: TextFile, *, block: int = BLOCK) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of a UTF-8 file as ``text_blocks`` does, and raise what that raises."""
    with open_bytes(file) as source:
        longest = None if file.format == "json" else _MAX_LINE_BYTES
        yield from text_blocks(source, file.name, block=block, longest=longest)


def text_blocks(
    source: IO[bytes], name: str, *, block: int = BLOCK, longest: int | None = None
) -> Iterator[tuple[int, list[str]]]:
    r"""Yield the lines of UTF-8 bytes, ``block`` bytes at a time.

    ``\n``, ``\r\n`` and a lone ``\r`` end a line; other separators of Unicode do not.

    Yields:
        The number of the first line, from 1, and lines without their ends.

    Raises:
        CseError: It is not UTF-8, holds NUL bytes, or has a line too long for a text;
            the line is named.
    """
    number, held, length = 1, [b""], 0
    while True:
        data = source.read(block)
        if number == 1 and not length:
            if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
                hint = "convert it: iconv -f UTF-16 -t UTF-8 OLD > NEW"
                raise CseError("not UTF-8 but UTF-16", where=f"{name}, line 1", hint=hint)
        cut = data.rfind(b"\n") + 1
        if data and not cut:
            held.append(data)
            length += len(data)
            if b"\0" in data:
                _decode(name, b"\0", number)
            if longest is not None and length > longest:
                what = f"a line of more than {longest:,} bytes"
                raise CseError(what, where=f"{name}, line {number}", hint="write one text per line")
            continue
        text = _decode(name, b"".join((*held, data[:cut])), number)
        if number == 1:
            text = text.removeprefix(_BYTE_ORDER_MARK)
        held, length = [data[cut:]], len(data) - cut
        if text:
            lines = text.split("\n")
            if not lines[-1]:
                lines.pop()
            yield number, lines
            number += len(lines)
        if not data:
            return


def _decode(name: str, data: bytes, number: int) -> str:
    if (nul := data.find(b"\0")) >= 0:
        line = number + data[:nul].count(b"\n")
        what = "contains a NUL byte, so it is not text"
        hint = "name a text file, or remove the bytes: tr -d '\\000' < OLD > NEW"
        raise CseError(what, where=f"{name}, line {line}", hint=hint)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = number + data[: error.start].count(b"\n")
        what = "not UTF-8"
        hint = "convert it, for example: iconv -f LATIN1 -t UTF-8 OLD > NEW"
        raise CseError(
            what, where=f"{name}, line {line}", value=data[error.start : error.end], hint=hint
        ) from error
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text
