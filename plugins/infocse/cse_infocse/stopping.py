"""When no more rounds are mined."""

from __future__ import annotations

from collections.abc import Sequence

UNSEEN_ROUNDS = 2
"""Rounds without a dev set: the paper's second is its best, its third slightly worse."""


def enough(scores: Sequence[float | None], rounds: int | None, patience: int) -> bool:
    """Return whether the rounds so far are all.

    Args:
        scores: Best dev score of each finished round, None without a dev set.
        rounds: Rounds at most.
        patience: Rounds without a better score after which it is over.
    """
    if rounds is not None and len(scores) >= rounds:
        return True
    known = [score for score in scores if score is not None]
    if len(known) < len(scores):
        return rounds is None and len(scores) >= UNSEEN_ROUNDS
    return bool(known) and len(known) - 1 - known.index(max(known)) >= patience
