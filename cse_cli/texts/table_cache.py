"""Token tables of large columns: files mapped into memory.

A file is named by a hash of all that it is made of, and has a checksum of its content, so what is
read is what would have been made. Files are written beside and renamed: complete or not there.
Processes that want the same table at the same time each make and rename it, to the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from cse_core.files import atomic_file, cache_folder
from cse_core.protocols import Tokenizer
from cse_core.reporter import Reporter
from cse_engine.step.token_table import AT_ONCE, TokenTable
from cse_engine.step.token_table import token_table as new_table

LARGE = 50_000
"""Texts from which on a table is kept, and its making is shown: below, making it takes a second."""
_FORMAT = 3
_SUM = "sum"
_COLUMNS = ("ids", "word", "offsets")
_QUIET = Reporter()


def token_table(
    texts: Sequence[str],
    tokenizer: Tokenizer,
    longest: int | None = None,
    reporter: Reporter = _QUIET,
) -> TokenTable:
    """Return the token table of texts, read from the cache where it was made before.

    The reporter hears how far a large table is, and why it is not kept.
    """
    if len(texts) < LARGE:
        return new_table(tokenizer, texts, longest)
    path, problem = None, None
    cache = cache_folder()
    if cache is not None:
        try:
            path = cache / "tokens" / f"{table_key(texts, tokenizer, longest)}.safetensors"
        except ValueError as error:
            problem = f": {error}"
    table = None if path is None else _table(path, len(texts))
    if table is None:
        table = new_table(
            tokenizer,
            texts,
            longest,
            lambda done: reporter.progress(done, len(texts), "texts tokenised"),
        )
        if path is not None:
            problem = _write(path, {name: getattr(table, name) for name in _COLUMNS})
            table = _table(path, len(texts)) or table  # which needs no memory of its own
    if problem is not None:
        reporter.message(f"the token cache is not written{problem}")
    return table


def table_key(texts: Sequence[str], tokenizer: Tokenizer, longest: int | None) -> str:
    """Return a hash of all that a token table depends on, as 40 hexadecimal digits.

    Raises:
        ValueError: If the tokenizer cannot say what it does: a part of it is written in Python.
    """
    about = (_FORMAT, longest, len(texts), tokenizer.state())
    digest = hashlib.blake2b(repr((*about, tokenizer.prompt)).encode(), digest_size=20)
    for start in range(0, len(texts), AT_ONCE):
        part = texts[start : start + AT_ONCE]
        digest.update(np.array([len(text) for text in part], dtype="<i8").tobytes())
        digest.update("".join(part).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _write(path: Path, tensors: Mapping[str, Tensor]) -> str | None:
    """Write a file, whole or not at all; returns what the disk says against it."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # they tell the texts
        with atomic_file(path, private=True) as beside:
            save_file(dict(tensors), beside, {_SUM: _sum(tensors)})
    except (OSError, SafetensorError) as error:
        return f" in {path.parent}: {getattr(error, 'strerror', None) or error}"
    return None


def _table(path: Path, texts: int) -> TokenTable | None:
    """Read a table over the file's own memory; None where it is missing or not as written."""
    try:
        if path.is_symlink() or not path.is_file():  # a pipe would be waited for
            return None
        with safe_open(path, "pt") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            whole = (file.metadata() or {}).get(_SUM) == _sum(arrays)
    except (OSError, SafetensorError):
        return None
    if not whole or arrays.keys() != set(_COLUMNS) or len(arrays["offsets"]) != texts + 1:
        return None
    return TokenTable(**arrays)


def _sum(tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.blake2b(digest_size=20)
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.numpy().data)
    return digest.hexdigest()
