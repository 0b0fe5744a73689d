"""A point with a seed, and its run: what a plan is made of."""

from __future__ import annotations

from dataclasses import dataclass

from cse_study.definition.points import Point
from cse_study.planning.composing import PlannedRun


@dataclass(frozen=True)
class Cell:
    """A point with a seed, and the run that it is scored by."""

    point: Point
    seed: int
    run: PlannedRun
