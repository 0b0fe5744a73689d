"""Pairs labelled 0 or 1 instead of graded: average precision and area under the ROC curve.

Spearman's correlation is defined for two labels too, but the ties bound it: with half of the pairs
labelled 1 a perfect ranking has 86.6. These two reach 100.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cse_evaluation.pairs import is_binary


@dataclass(frozen=True)
class BinaryScore:
    """How well values tell pairs labelled 1 from pairs labelled 0.

    Attributes:
        average_precision: x100; a random ranking has about the share of pairs labelled 1.
        roc_auc: Area under the ROC curve x100; a random ranking has 50.
        positives: Pairs labelled 1.
    """

    average_precision: float
    roc_auc: float
    positives: int

    def to_json(self) -> dict[str, Any]:
        """Return all fields."""
        return {
            "average_precision": round(self.average_precision, 4),
            "roc_auc": round(self.roc_auc, 4),
            "positives": self.positives,
        }


def binary_score(gold: Sequence[float], values: NDArray[np.float64]) -> BinaryScore | None:
    """Score a ranking of pairs by their labels.

    Args:
        gold: Scores of P pairs.
        values: Values to rank them by ``[P]``.

    Returns:
        The score, None where the gold scores are not 0 and 1 alone.
    """
    if not is_binary(gold):
        return None
    from sklearn.metrics import average_precision_score, roc_auc_score

    return BinaryScore(
        100.0 * float(average_precision_score(gold, values)),
        100.0 * float(roc_auc_score(gold, values)),
        int(sum(gold)),
    )
