"""IsoScore of the vectors of a set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cse_core.parts import Metric


def isoscore(vectors: NDArray[Any]) -> float:
    """Return IsoScore of ``[N, D]`` vectors: 1 if all dimensions vary equally, 0 if one does.

    Algorithm 1 of the paper needs only the eigenvalues l of the covariance C. Put together, its
    steps are ``((sum l)^2 / sum l^2 - 1) / (D - 1)``, and both sums are a trace: of C, and of C^2.
    Vectors that are all equal have no covariance and score 0.
    """
    points = np.asarray(vectors, dtype=np.float64)
    points = points - points.mean(axis=0)
    covariance = points.T @ points / max(len(points) - 1, 1)
    spread = float((covariance**2).sum())
    dimension = covariance.shape[0]
    if spread == 0 or dimension == 1:
        return 0.0
    return float((np.trace(covariance) ** 2 / spread - 1) / (dimension - 1))


class IsoScore(Metric):
    """IsoScore over the different texts of a set."""

    def compute(self, encode: Callable[[Sequence[str]], Any], pairs: Any) -> dict[str, float]:
        """Return the score of the set's texts."""
        return {"score": isoscore(np.asarray(encode(pairs.texts)))}
