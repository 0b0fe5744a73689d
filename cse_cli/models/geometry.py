"""How far vectors ``[N, D]`` are spread: what shows a collapse."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def unit(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return vectors ``[N, D]`` scaled to length 1 in float64; a zero vector stays zero."""
    exact = vectors.astype(np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    return np.asarray(exact / np.where(lengths == 0, 1.0, lengths))


def mean_cosine(vectors: NDArray[np.float64]) -> float | None:
    """Return the mean cosine over all pairs i < j of unit vectors ``[N, D]``.

    1 where all vectors are equal, near 0 where they are spread; None with fewer than two.
    """
    count = len(vectors)
    if count < 2:
        return None
    total = float((vectors.sum(axis=0) ** 2).sum() - (vectors**2).sum())
    return total / (count * (count - 1))


def singular_values(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the singular values of ``[N, D]``, not centred, falling, the largest scaled to 1."""
    values = np.asarray(np.linalg.svd(vectors, compute_uv=False), dtype=np.float64)
    return np.asarray(values / values[0]) if values[0] > 0 else values


def effective_rank(values: NDArray[np.float64]) -> float:
    """Return exp of the entropy of the singular values scaled to sum 1.

    Roy and Vetterli (2007), "The effective rank: a measure of effective dimensionality",
    definition 1: 1 where all vectors lie on a line, min(N, D) where all singular values are equal;
    0 where all vectors are zero.
    """
    if not values.any():
        return 0.0
    shares = values[values > 0] / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))
