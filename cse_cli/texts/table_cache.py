"""Token tables of large columns, and vectors of encoders that stay: files mapped into memory.

A file is named by a hash of all that it is made of, so what is read is what would have been made.
Files are written beside and renamed: complete or not there. Processes that want the same table at
the same time each make and rename it, to the same bytes; vectors are written by the first one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from cse_core.files import atomic_file, cache_folder
from cse_core.protocols import Tokenizer
from cse_core.reporter import Reporter
from cse_engine.runtime.distributed import rank_and_size
from cse_engine.runtime.sharing import all_gather_objects
from cse_engine.step.sentence_encoder import SentenceEncoder
from cse_engine.step.token_table import AT_ONCE, TokenTable
from cse_engine.step.token_table import token_table as new_table
from cse_engine.step.training_rows import TrainingRows

LARGE = 50_000
"""Texts from which on a table is kept, and its making is shown: below, making it takes a second."""
_FORMAT = 2
_COLUMNS = ("ids", "word", "offsets")
_QUIET = Reporter()


def keep_tables(rows: TrainingRows, reporter: Reporter) -> None:
    """Let rows keep tokens of large columns, and vectors of encoders that stay, on disk."""
    rows.make_table, rows.make_vectors = token_table, partial(kept_vectors, reporter)


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


def kept_vectors(
    reporter: Reporter, table: TokenTable, encoder: SentenceEncoder, make: Callable[[], Tensor]
) -> Tensor:
    """Return the vectors ``[texts, D]`` of a table, read from the cache where they were made.

    All processes ask for the same and ``make`` them together, unless each can read the file. The
    reporter hears where they come from, and why they are not kept.
    """
    cache = cache_folder()
    if cache is None:
        return make()
    path = cache / "vectors" / f"{vectors_key(table, encoder)}.safetensors"
    cached = _vectors(path, table)
    _, usable = all_gather_objects(lambda: cached is not None, bool)
    if cached is None or not all(usable):
        made = make()
        problem = _write(path, {"vectors": made}) if rank_and_size()[0] == 0 else None
        all_gather_objects(lambda: None)  # the others read what the first process has written
        if problem is not None:
            reporter.message(f"the vectors are not kept{problem}")
        cached = _vectors(path, table)
        return made if cached is None else cached
    reporter.message(f"{len(cached):,} vectors of another encoder come from {path}")
    return cached


def vectors_key(table: TokenTable, encoder: SentenceEncoder) -> str:
    """Return a hash of all that vectors depend on, as 40 hexadecimal digits."""
    model: Any = encoder.encoder.model
    device = next(encoder.encoder.parameters()).device.type
    empty = encoder.rows(encoder.tokenizer.content([""]), "anchor")  # special tokens and prompts
    stages = (encoder.pooler, *encoder.heads.values())
    parts = [(type(stage).__qualname__, getattr(stage, "options", None)) for stage in stages]
    numbers = device, torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
    after = encoder.max_length, encoder.normalize, encoder.truncate_dim
    about = (_FORMAT, torch.__version__, numbers, after, parts, model.config.to_json_string())
    digest = hashlib.blake2b(repr(about).encode(), digest_size=20)
    tensors = [(name, getattr(table, name)) for name in _COLUMNS] + [("", empty.ids)]
    for module in encoder.modules():
        tensors += module.state_dict().items()
    for name, tensor in tensors:
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def _write(path: Path, tensors: Mapping[str, Tensor]) -> str | None:
    """Write a file, whole or not at all; returns what the disk says against it."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # they tell the texts
        with atomic_file(path, private=True) as beside:
            save_file(dict(tensors), beside)
    except (OSError, SafetensorError) as error:
        return f" in {path.parent}: {getattr(error, 'strerror', None) or error}"
    return None


def _read(path: Path) -> dict[str, Tensor]:
    """Return a file's tensors over its own memory; none where it is missing or damaged."""
    try:
        arrays: dict[str, Tensor] = load_file(path)
    except (OSError, SafetensorError):
        return {}
    return arrays


def _table(path: Path, texts: int) -> TokenTable | None:
    arrays = _read(path)
    if arrays.keys() != set(_COLUMNS) or len(arrays["offsets"]) != texts + 1:
        return None
    return TokenTable(**arrays)


def _vectors(path: Path, table: TokenTable) -> Tensor | None:
    rows = _read(path).get("vectors")
    return rows if rows is not None and len(rows) == len(table.offsets) - 1 else None
