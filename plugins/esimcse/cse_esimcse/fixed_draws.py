"""Uniform numbers that depend on a row's tokens and a seed alone, not on the step."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cse_core.types import TokenBatch, positions_of

Words = NDArray[np.uint64]

_STRIDE = np.uint64(0x9E3779B97F4A7C15)


def fixed_draws(tokens: TokenBatch, seed: int) -> tuple[Tensor, Tensor]:
    """Return ``[R]`` and ``[T]`` float64 numbers in [0, 1), for rows and for tokens.

    Rows of equal ids draw the same, whatever the step, the order of the batch, the chunk or the
    process. The numbers are those of SplitMix64 (Steele, Lea and Flood, 2014), counted from a sum
    over the row.
    """
    place = positions_of(tokens.offsets).numpy().astype(np.uint64)
    ids = tokens.ids.cpu().numpy().astype(np.uint64)
    start = np.uint64(seed)
    each = _mix(_mix(ids + start) + place * _STRIDE)
    # Sums modulo 2**64, so that the difference of two of them is the sum of a row.
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(each, dtype=np.uint64)])
    offsets = tokens.offsets.numpy()
    row = _mix(sums[offsets[1:]] - sums[offsets[:-1]] + start)
    rows = np.repeat(row, tokens.lengths.numpy())
    return _uniform(_mix(row + _STRIDE)), _uniform(_mix(rows + (place + np.uint64(2)) * _STRIDE))


def _mix(words: Words) -> Words:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _uniform(words: Words) -> Tensor:
    return torch.from_numpy((words >> np.uint64(11)).astype(np.float64) * 2.0**-53)
