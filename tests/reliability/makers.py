"""Files and folders that a table of inputs names under ``made``, each made by a function here."""

from __future__ import annotations

import contextlib
import gzip
import os
import random
import shutil
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path

from cse_core.runtime.loading import package_path

Maker = Callable[[Path], None]
MAKERS: dict[str, Maker] = {}


def maker(name: str) -> Callable[[Maker], Maker]:
    """Register a function that makes what ``made = ["NAME"]`` or ``"NAME as PATH"`` asks for."""

    def add(function: Maker) -> Maker:
        MAKERS[name] = function
        return function

    return add


def starter_folder() -> Path:
    """Return the folder of the embedded encoder."""
    from cse_cli.plugins.installed import Installed

    return package_path(Installed().registry.encoder("starter").spec.path)


@maker("encoder")
def encoder(path: Path) -> None:
    """A copy of the embedded encoder's folder."""
    shutil.copytree(starter_folder(), path)


@maker("fifo")
def fifo(path: Path) -> None:
    """A pipe that nobody writes to."""
    os.mkfifo(path)


@maker("socket")
def a_socket(path: Path) -> None:
    """A socket that nobody answers at."""
    with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(path.parent):
        made.bind(path.name)


@maker("endless")
def endless(path: Path) -> None:
    """A link to a device that gives zeros without end."""
    path.symlink_to("/dev/zero")


@maker("link to itself")
def link_to_itself(path: Path) -> None:
    """A link that leads nowhere."""
    path.symlink_to(path.name)


@maker("huge file")
def huge_file(path: Path) -> None:
    """A file of a terabyte that takes no place."""
    with path.open("wb") as file:
        file.truncate(2**40)


@maker("bytes that are no text")
def no_text(path: Path) -> None:
    """Bytes that are no UTF-8."""
    path.write_bytes(b"caf\xe9 \xff\xfe\n" * 3)


@maker("links in a circle")
def links_in_a_circle(path: Path) -> None:
    """A folder with a link to itself, and a text file beside it."""
    path.mkdir()
    (path / "again").symlink_to(path, target_is_directory=True)
    (path / "texts.txt").write_text("a text\nanother text\n" * 4)


@maker("two links to each other")
def two_links(path: Path) -> None:
    """A link to a link that leads back."""
    other = path.with_name(f"other-{path.name}")
    path.symlink_to(other.name)
    other.symlink_to(path.name)


@maker("link to ok.txt")
def good_link(path: Path) -> None:
    """A link to a file with texts."""
    path.symlink_to("ok.txt")


def _gz(path: Path, chunk: bytes, times: int) -> None:
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(times):
            file.write(chunk)


@maker("gz bomb of zeros")
def zeros(path: Path) -> None:
    """A gigabyte of zero bytes."""
    _gz(path, bytes(2**24), 64)


@maker("gz bomb of one line")
def one_line(path: Path) -> None:
    """A line of half a gigabyte."""
    _gz(path, b"a" * 2**24, 32)


@maker("gz of gz")
def gz_of_gz(path: Path) -> None:
    """Texts compressed twice."""
    path.write_bytes(gzip.compress(gzip.compress(b"a text\nanother text\n" * 9)))


@maker("gz of texts")
def gz_of_texts(path: Path) -> None:
    """Texts, compressed in two members as ``cat a.gz b.gz`` gives them."""
    path.write_bytes(b"".join(gzip.compress(f"a {n} text\n".encode() * 9) for n in "xy"))


@maker("gz cut short")
def gz_cut_short(path: Path) -> None:
    """Half of a compressed file."""
    whole = gzip.compress(os.urandom(2000).hex().encode())
    path.write_bytes(whole[: len(whole) // 2])


@maker("gz with bytes behind")
def gz_with_bytes_behind(path: Path) -> None:
    """A compressed file with other bytes at its end."""
    path.write_bytes(gzip.compress(b"a text\nanother text\n" * 9) + b"more\n")


def _parquet(path: Path, columns: dict[str, object], **how: object) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path, **how)


@maker("parquet of texts")
def parquet_of_texts(path: Path) -> None:
    """Twenty rows, their text in the third column."""
    texts = [f"a text of number {n}" for n in range(20)]
    _parquet(path, {"id": list(range(20)), "when": [0.5] * 20, "text": texts})


@maker("parquet with nulls in the middle")
def parquet_nulls(path: Path) -> None:
    """Rows without a text among others."""
    _parquet(path, {"text": [f"a text {n}" if n % 5 else None for n in range(40)]})


@maker("parquet of one long text many times")
def long_texts(path: Path) -> None:
    """A text of a megabyte that hardly packs, and a hundred thousand rows that all hold it."""
    import pyarrow as pa

    text = random.Random(0).randbytes(500_000).hex()
    values = pa.DictionaryArray.from_arrays(pa.array([0] * 10**5, pa.int8()), [text])
    _parquet(path, {"text": values})


@maker("parquet of lists")
def parquet_of_lists(path: Path) -> None:
    """A text column that holds lists."""
    _parquet(path, {"text": [["a"], ["b", "c"]] * 5})


@maker("parquet without rows")
def parquet_without_rows(path: Path) -> None:
    """A column and no row."""
    import pyarrow as pa

    _parquet(path, {"text": pa.array([], pa.string())})


@maker("parquet without columns")
def parquet_without_columns(path: Path) -> None:
    """Nothing at all."""
    _parquet(path, {})


@maker("parquet cut short")
def parquet_cut_short(path: Path) -> None:
    """Half of a parquet file."""
    parquet_of_texts(path)
    path.write_bytes(path.read_bytes()[:400])


@maker("parquet flipped")
def parquet_flipped(path: Path) -> None:
    """A parquet file with wrong bytes in its page."""
    parquet_of_texts(path)
    data = bytearray(path.read_bytes())
    data[20:120] = bytes(255 - byte for byte in data[20:120])
    path.write_bytes(data)


@maker("UTF-16")
def utf_16(path: Path) -> None:
    """Texts as Windows' Notepad once wrote them."""
    path.write_bytes("a text\nanother text\n".encode("utf-16"))


@maker("UTF-32")
def utf_32(path: Path) -> None:
    """Texts of four bytes a letter."""
    path.write_bytes("a text\nanother text\n".encode("utf-32-le"))


@maker("latin-1")
def latin_1(path: Path) -> None:
    """Texts of one byte a letter."""
    path.write_bytes("caf\xe9 cr\xe8me\n".encode("latin-1") * 9)


@maker("a zip")
def a_zip(path: Path) -> None:
    """An archive that is not a gz."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("texts.txt", "a text\n")


@maker("no permission")
def no_permission(path: Path) -> None:
    """A file that only its owner could not read either."""
    path.write_text("a text\n" * 9)
    path.chmod(0)
