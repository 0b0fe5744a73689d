"""Token tables of large columns, kept on disk: a file each, mapped into memory when read.

A file is named by a hash of the texts, the tokenizer and the cut, so what is read is what would
have been made. Files are written beside and renamed: complete or not there. Processes that want
the same table at the same time each make and rename it, to the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from cse_cli.plugins.folders import cache_folder
from cse_core.files import atomic_file
from cse_core.reporter import Reporter
from cse_core.tokenization.tokenizer import AT_ONCE, TextTokenizer, TokenTable

LARGE = 50_000
"""Texts from which on a table is kept, and its making is shown: below, making it takes a second."""
_FORMAT = 2
_QUIET = Reporter()


def token_table(
    texts: Sequence[str],
    tokenizer: TextTokenizer,
    longest: int | None = None,
    reporter: Reporter = _QUIET,
) -> TokenTable:
    """Return the token table of texts, read from the cache where it was made before.

    The reporter hears how far a large table is, and why it is not kept.
    """
    if len(texts) < LARGE:
        return tokenizer.table(texts, longest)
    path, problem = None, None
    cache = cache_folder()
    if cache is not None:
        try:
            path = cache / "tokens" / f"{table_key(texts, tokenizer, longest)}.safetensors"
        except ValueError as error:
            problem = f": {error}"
    found = None if path is None else _read(path, len(texts))
    if found is None:
        found = tokenizer.table(
            texts, longest, lambda done: reporter.progress(done, len(texts), "texts tokenised")
        )
        if path is not None:
            try:
                _write(path, found)
                found = _read(path, len(texts)) or found  # which needs no memory of its own
            except (OSError, SafetensorError) as error:
                problem = f" in {path.parent}: {getattr(error, 'strerror', None) or error}"
    if problem is not None:
        reporter.message(f"the token cache is not written{problem}")
    return found


def table_key(texts: Sequence[str], tokenizer: TextTokenizer, longest: int | None) -> str:
    """Return a hash of all that a token table depends on, as 40 hexadecimal digits.

    Raises:
        ValueError: If the tokenizer cannot say what it does: a part of it is written in Python.
    """
    from tokenizers import __version__

    hf = tokenizer.hf
    try:
        state = json.loads(hf.backend_tokenizer.to_str())
    except Exception as error:  # the library raises nothing more exact
        raise ValueError(str(error)) from None
    state.update(truncation=None, padding=None)  # every call sets them
    cut = None if longest is None else (longest, hf.truncation_side)
    about = (_FORMAT, __version__, cut, bool(hf.split_special_tokens), len(texts))
    digest = hashlib.blake2b(repr((*about, tokenizer.prompt)).encode(), digest_size=20)
    digest.update(json.dumps(state, sort_keys=True).encode())
    for start in range(0, len(texts), AT_ONCE):
        part = texts[start : start + AT_ONCE]
        digest.update(np.array([len(text) for text in part], dtype="<i8").tobytes())
        digest.update("".join(part).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _write(path: Path, table: TokenTable) -> None:
    """Write a table, whole or not at all; raises what the disk does."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # the ids tell the texts
    columns = {"ids": table.ids, "word": table.word, "offsets": table.offsets}
    with atomic_file(path, private=True) as beside:
        save_file(columns, beside)


def _read(path: Path, texts: int) -> TokenTable | None:
    """Return a file's table over its own memory; None where it is missing or damaged."""
    try:
        table = TokenTable(**load_file(path))
    except (OSError, SafetensorError, TypeError):
        return None
    return table if len(table.offsets) == texts + 1 else None
