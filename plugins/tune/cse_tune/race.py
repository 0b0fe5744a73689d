"""Who goes on in a race: paired tests on the same questions, corrected for every look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cse import LEVEL, Comparison, Difference, compared, corrected, draws_of

DRAWS = 10_000
"""How often questions are drawn."""
Gains = NDArray[np.float64]
"""nDCG@10 of each question, ``[Q]``, from 0 to 1."""


@dataclass(frozen=True)
class Left:
    """Why a point left the race.

    Attributes:
        number: The point.
        why: ``worse`` than the best by a corrected test, without ``room`` among those that go
            on, or ``failed``.
        difference: From the best, corrected for all comparisons of the race; None if it failed.
        line: What failed.
    """

    number: int
    why: Literal["worse", "room", "failed"]
    difference: Difference | None = None
    line: str = ""


def difference_of(ours: Sequence[Gains], theirs: Sequence[Gains]) -> Comparison:
    """Compare two models on the same questions, one pair of runs for each seed, in points."""
    changes = [one - other for one, other in zip(ours, theirs, strict=True)]
    values = [float(100 * change.mean()) for change in changes]
    drawn = [draws_of([(change,)], DRAWS) for change in changes]
    made = compared(values, drawn, len(changes[0]))
    assert made is not None
    return made


def look(gains: Mapping[int, Gains], *, family: int, room: int) -> tuple[list[int], list[Left]]:
    """Return the points that go on, the best first, and those that leave.

    A point that is worse than the best leaves; of the others at most ``room`` go on, those with the
    highest means. ``family`` is how many comparisons the race has in all of its looks: each is
    corrected for all by Holm's method.

    Args:
        gains: Of each point, on the same questions.
        family: Comparisons of the race.
        room: Points that go on, at most.
    """
    order = sorted(gains, key=lambda number: (-gains[number].mean(), number))
    best, *others = order
    found = [difference_of([gains[number]], [gains[best]]) for number in others]
    differences = dict(zip(others, corrected(found, family), strict=True))
    left = []
    stay = [best]
    for number, difference in differences.items():
        if difference.value < 0 and difference.p < LEVEL:
            left.append(Left(number, "worse", difference))
        elif len(stay) < room:
            stay.append(number)
        else:
            left.append(Left(number, "room", difference))
    return stay, left


def as_json(difference: Difference) -> dict[str, float]:
    """Return a difference as ``--json`` shows it."""
    return {name: getattr(difference, name) for name in ("value", "low", "high", "p")}
