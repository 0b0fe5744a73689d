"""Token tables of large columns, kept on disk: an Arrow file each, mapped into memory when read.

A file is named by a hash of the texts, the tokenizer and the cut, so what is read is what would
have been made. Files are written beside and renamed: complete or not there.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cse_core.runtime import distributed
from cse_core.runtime.atomic_files import cache_folder
from cse_core.runtime.reporter import Reporter
from cse_core.tokenization.tokenizer import TextTokenizer, TokenTable

LARGE = 50_000
"""Texts from which on a table is kept, and its making is shown: below, making it takes a second."""
LIMIT = 4 * 2**30
"""Bytes that the files take together; the least recently used go first."""
_FORMAT = 1
_AT_ONCE = 10_000
_MOST_WAITED = 3600.0
_HEAD_START = 1.0
"""Seconds for the first of several processes, the only one that shows how far it is."""
_ABANDONED = 24 * 3600.0
"""Seconds after which a file that was never renamed belongs to a process that is gone."""
_QUIET = Reporter()


class UnserialisableTokenizer(Exception):
    """A tokenizer has a part that was written in Python, which may do anything."""


def table_folder() -> Path | None:
    """Return the folder of token tables, None where nothing is to be kept."""
    folder = cache_folder()
    return None if folder is None else folder / "tokens"


def token_table(
    texts: Sequence[str],
    tokenizer: TextTokenizer,
    longest: int | None = None,
    reporter: Reporter = _QUIET,
) -> TokenTable:
    """Return the token table of texts, read from the cache where it was made before.

    Of several processes that want one table, one makes it and the others read it. Where nothing
    can be kept, each makes its own.

    Args:
        texts: The texts; sliced a batch at a time.
        tokenizer: What makes tokens of them.
        longest: Tokens of a text that are kept at most.
        reporter: Who hears how far a large table is.
    """
    if len(texts) < LARGE:
        return tokenizer.table(texts, longest)

    def make() -> TokenTable:
        return tokenizer.table(
            texts, longest, lambda done: reporter.progress(done, len(texts), "texts tokenised")
        )

    folder = table_folder()
    if folder is None:
        return make()
    try:
        path = folder / f"{table_key(texts, tokenizer, longest)}.arrow"
    except UnserialisableTokenizer as error:
        reporter.message(f"tokens are not kept: {error}")
        return make()
    found = _read(path, len(texts))
    if found is not None:
        return found
    if distributed.world()[0]:
        time.sleep(_HEAD_START)
    with _sole_writer(path, reporter) as problem:
        # Another process may have made it meanwhile.
        found = _read(path, len(texts))
        if found is not None:
            return found
        table = make()
        if problem is None:
            problem = _write(path, table)
        if problem is not None:
            reporter.message(f"tokens are not kept in {folder}: {problem}")
            return table
        _make_room(path)
    return _read(path, len(texts)) or table


def table_key(texts: Sequence[str], tokenizer: TextTokenizer, longest: int | None) -> str:
    """Return a hash of all that a token table depends on, as 40 hexadecimal digits.

    Raises:
        UnserialisableTokenizer: If the tokenizer cannot say what it does.
    """
    from tokenizers import __version__

    hf = tokenizer.hf
    try:
        state = json.loads(hf.backend_tokenizer.to_str())
    except Exception as error:  # the library raises nothing more exact
        raise UnserialisableTokenizer(str(error)) from None
    state.update(truncation=None, padding=None)  # set anew at each call
    cut = None if longest is None else (longest, hf.truncation_side)
    about = (_FORMAT, __version__, cut, bool(hf.split_special_tokens), len(texts))
    digest = hashlib.blake2b(repr(about).encode(), digest_size=20)
    digest.update(json.dumps(state, sort_keys=True).encode())
    for start in range(0, len(texts), _AT_ONCE):
        part = texts[start : start + _AT_ONCE]
        digest.update(np.array([len(text) for text in part], dtype="<i8").tobytes())
        digest.update("".join(part).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


@contextmanager
def _sole_writer(path: Path, reporter: Reporter) -> Iterator[str | None]:
    """Give None to one process at a time; where nothing can be locked, why it cannot be."""
    from filelock import FileLock, Timeout

    lock = FileLock(path.with_suffix(".lock"))
    problem = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            reporter.message("waiting for another process that tokenises the same texts")
            lock.acquire(timeout=_MOST_WAITED)
    except (OSError, NotImplementedError) as error:  # Timeout is an OSError
        problem = getattr(error, "strerror", None) or str(error)
    try:
        yield problem
    finally:
        if problem is None:
            lock.release()


def _write(path: Path, table: TokenTable) -> str | None:
    """Write a table beside its file and rename it; return why it could not be, if so."""
    import pyarrow as pa

    ids, word, offsets = (each.numpy() for each in (table.ids, table.word, table.offsets))
    tokens = pa.StructArray.from_arrays([pa.array(ids), pa.array(word)], names=["id", "word"])
    column = pa.LargeListArray.from_arrays(pa.array(offsets), tokens)
    batch = pa.record_batch({"tokens": column})
    sums = json.dumps([zlib.crc32(values.data) for values in (offsets, ids, word)])
    batch = batch.replace_schema_metadata({"crc32": sums})
    beside = None
    try:
        handle, beside = tempfile.mkstemp(".part", f".{path.stem}-", path.parent)
        with os.fdopen(handle, "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
            writer.write_batch(batch)
        os.replace(beside, path)
    except OSError as error:
        if beside is not None:
            with suppress(OSError):
                os.unlink(beside)
        return error.strerror or str(error)
    return None


def _read(path: Path, texts: int) -> TokenTable | None:
    """Return a file's table over its own memory; None where it is missing or damaged."""
    import pyarrow as pa

    try:
        with path.open("rb") as file:
            # Torch refuses read-only memory with a warning; of a copy on write nothing is written.
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        whole = pa.py_buffer(mapped)
        batch = pa.ipc.open_file(whole).get_batch(0)
        column = batch.column("tokens")
        parts = [
            _in_place(mapped, whole.address, buffer, dtype, count)
            for buffer, dtype, count in (
                (column.buffers()[1], np.int64, len(column) + 1),
                (column.values.field(0).buffers()[1], np.int32, len(column.values)),
                (column.values.field(1).buffers()[1], np.int32, len(column.values)),
            )
        ]
        sums = json.loads(batch.schema.metadata[b"crc32"])
        if len(column) != texts or sums != [zlib.crc32(values.data) for values in parts]:
            return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, pa.ArrowException):
        return None
    with suppress(OSError):
        os.utime(path)
    offsets, ids, word = (torch.from_numpy(values) for values in parts)
    return TokenTable(ids=ids, word=word, offsets=offsets)


def _in_place(
    mapped: mmap.mmap, address: int, buffer: Any, dtype: type[np.generic], count: int
) -> NDArray[Any]:
    return np.frombuffer(mapped, dtype, count, buffer.address - address)


def _make_room(newest: Path) -> None:
    """Remove the least recently used tables over the limit, and what dead processes left."""
    now, tables = time.time(), []
    with suppress(OSError):
        for entry in os.scandir(newest.parent):
            with suppress(OSError):
                about = entry.stat()
                if entry.name.endswith(".arrow"):
                    tables.append((about.st_mtime, about.st_size, Path(entry.path)))
                elif entry.name.endswith((".part", ".lock")) and now - about.st_mtime > _ABANDONED:
                    os.unlink(entry.path)
    total = sum(size for _, size, _ in tables)
    for _, size, path in sorted(tables):
        if total <= LIMIT:
            return
        if path != newest:
            total -= size
            with suppress(OSError):
                path.unlink()
