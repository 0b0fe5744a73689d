"""The pairs of a round in one file: rows and numbers as arrays, texts as UTF-8 and lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

PAIRS = "pairs.safetensors"
_VALUES, _TEXTS, _LENGTHS = "values:", "texts:", "lengths:"
"""Prefixes of the tensors of a column: its numbers, or its texts end to end and their lengths."""


def save_pairs(path: Path, pairs: Mapping[str, NDArray[Any] | Sequence[str]]) -> None:
    """Write columns of equal length: arrays ``[rows]``, or texts."""
    tensors: dict[str, NDArray[Any]] = {}
    for name, values in pairs.items():
        if isinstance(values, np.ndarray):
            tensors[f"{_VALUES}{name}"] = np.ascontiguousarray(values)
        else:
            texts = "".join(values).encode("utf-8", "surrogatepass")
            tensors[f"{_TEXTS}{name}"] = np.frombuffer(texts, np.uint8)
            tensors[f"{_LENGTHS}{name}"] = np.array([len(text) for text in values], np.int64)
    save_file(tensors, path)


def load_pairs(path: Path, columns: Sequence[str]) -> dict[str, NDArray[Any] | list[Any]]:
    """Read what :func:`save_pairs` wrote, in the order of ``columns``.

    Integers are arrays, other numbers and texts are lists.

    Raises:
        SafetensorError: If the file is damaged.
        KeyError: If it lacks a column.
    """
    tensors = load_file(path)
    pairs: dict[str, NDArray[Any] | list[Any]] = {}
    for name in columns:
        values = tensors.get(f"{_VALUES}{name}")
        if values is not None:
            pairs[name] = values if values.dtype.kind in "iu" else values.tolist()
            continue
        texts = tensors[f"{_TEXTS}{name}"].tobytes().decode("utf-8", "surrogatepass")
        ends = accumulate(tensors[f"{_LENGTHS}{name}"].tolist(), initial=0)
        pairs[name] = [texts[start:end] for start, end in pairwise(ends)]
    return pairs
