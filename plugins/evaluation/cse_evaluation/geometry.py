"""How vectors lie on the sphere: alignment, uniformity, singular values, mean cosine.

All take unit vectors. Alignment and uniformity are those of Wang and Isola (2020), "Understanding
contrastive representation learning through alignment and uniformity on the hypersphere".
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cse import effective_rank, mean_cosine, singular_values
from cse_evaluation.pairs import PairSet

POSITIVE_SHARE = 0.8
"""Alignment is over pairs scored above this share of the highest score: above 4 where it is 5."""
TEMPERATURE = 2.0
"""t of the uniformity, the mean of exp(-t d^2)."""
MOST_SENTENCES = 20_000
"""With more distinct sentences, uniformity is that of so many drawn with a fixed seed."""
_BLOCK = 4_000_000


def alignment(first: NDArray[np.float64], second: NDArray[np.float64]) -> float | None:
    """Return the mean squared distance of unit vectors ``[P, D]`` of positive pairs.

    Wang and Isola (2020), Eq. 2 with alpha = 2; 0 is best, 4 the largest; None without a pair.
    """
    if not len(first):
        return None
    return float(((first - second) ** 2).sum(axis=1).mean())


def uniformity(vectors: NDArray[np.float64]) -> float | None:
    """Return log mean exp(-2 d^2) over all pairs i < j of unit vectors ``[N, D]``.

    Wang and Isola (2020), Eq. 3 with t = 2; 0 where all vectors are equal, lower is more uniform;
    None with fewer than two vectors. Memory is bounded, time grows with N^2.
    """
    count = len(vectors)
    if count < 2:
        return None
    squares = (vectors**2).sum(axis=1)
    rows = max(1, _BLOCK // count)
    total = 0.0
    for start in range(0, count, rows):
        block = vectors[start : start + rows]
        rest = vectors[start:]
        distances = squares[start : start + rows, None] + squares[None, start:] - 2 * block @ rest.T
        kernel = np.exp(-TEMPERATURE * np.maximum(distances, 0.0))
        total += float(np.triu(kernel, k=1).sum())
    return math.log(total / (count * (count - 1) / 2))


def spread_of(vectors: NDArray[np.float64]) -> dict[str, float]:
    """Return ``mean_cosine`` and ``effective_rank`` of unit vectors ``[N, D]``.

    The mean cosine of a single vector is left out.
    """
    cosine = mean_cosine(vectors)
    known = {} if cosine is None else {"mean_cosine": cosine}
    return known | {"effective_rank": effective_rank(singular_values(vectors))}


def measure(
    pairs: PairSet,
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    distinct: NDArray[np.float64],
) -> dict[str, dict[str, Any]]:
    """Measure a pair file by unit vectors: ``[P, D]`` of each side, ``[N, D]`` distinct.

    Returns:
        ``alignment``, ``uniformity``, ``mean_cosine`` and ``effective_rank``, each with its
        ``value`` and what it is over, and ``singular_values`` with its ``values``.
    """
    threshold = POSITIVE_SHARE * pairs.scale[1]
    positive = np.array([score > threshold for score in pairs.gold])
    spread = distinct
    if len(distinct) > MOST_SENTENCES:
        rows = np.random.default_rng(0).choice(len(distinct), MOST_SENTENCES, replace=False)
        spread = distinct[np.sort(rows)]
    values, over = singular_values(distinct), {"sentences": len(distinct)}
    return {
        "alignment": {
            "value": alignment(first[positive], second[positive]),
            "pairs": int(positive.sum()),
            "scored_above": threshold,
        },
        "uniformity": {"value": uniformity(spread), "sentences": len(spread)},
        "mean_cosine": {"value": mean_cosine(distinct), **over},
        "effective_rank": {"value": effective_rank(values), **over},
        "singular_values": {"values": values.tolist(), **over},
    }
