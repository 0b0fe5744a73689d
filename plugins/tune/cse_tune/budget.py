"""How many compositions race, and for how many steps, within some minutes."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass

from cse_core.errors import CseError

SHRINK = 4
"""A rung has a quarter of the points of the one before, trained for four times as many steps."""
RUNGS = 3
LEAST_STEPS, LEAST_POINTS = 72, 3
_SLOWER = 1.25
"""Seconds a step of the race's methods beside those of SimCSE, about."""
_BESIDE = 2
"""Recipes that the winner is judged beside, trained with as many seeds."""


@dataclass(frozen=True)
class Costs:
    """What a run takes on one worker, in seconds.

    Attributes:
        step: A step of training.
        run: What a run takes beside its steps: its start, and scoring it in the race.
        judging: Scoring a model at the end.
    """

    step: float
    run: float
    judging: float


@dataclass(frozen=True)
class Budget:
    """How a race is laid out.

    Attributes:
        points: Compositions that begin.
        steps: Steps of the winner, and of the last rung.
        seeds: Seeds with which the winner and what it is judged beside are trained.
    """

    points: int
    steps: int
    seeds: int

    @property
    def rungs(self) -> list[tuple[int, int]]:
        """Return steps of each rung, and how many points begin it at most."""
        sizes = [SHRINK ** (RUNGS - 1 - rung) for rung in range(RUNGS)]
        return [
            (max(1, self.steps // size), math.ceil(self.points / SHRINK**rung))
            for rung, size in enumerate(sizes)
        ]

    def judging(self, costs: Costs) -> float:
        """Return the seconds after the race, on one worker."""
        runs = self.seeds * (1 + _BESIDE)
        trained = (runs - 1) * (costs.run + _SLOWER * costs.step * self.steps)
        return trained + (runs + 1) * costs.judging

    def seconds(self, costs: Costs) -> float:
        """Return the seconds of all, on one worker."""
        race = sum(points * (costs.run + _SLOWER * costs.step * steps)
                   for steps, points in self.rungs)  # fmt: skip
        return race + self.judging(costs)


def drawn(groups: Mapping[int, str], count: int) -> list[int]:
    """Return some points, as many of each group as there is room for, the same ones each time.

    ``groups`` has the place of each point on the first axis, such as its method.
    """
    draws = random.Random(0)
    order = sorted(groups, key=lambda _: draws.random())
    turns: dict[str, int] = {}
    rank = {}
    for number in order:
        rank[number] = turns[groups[number]] = turns.get(groups[number], 0) + 1
    return sorted(sorted(order, key=rank.__getitem__)[:count])


def lay_out(points: int, seeds: int, most: int, costs: Costs, seconds: float) -> Budget:
    """Return the race with the most points, and for these the most steps, that the time allows.

    Args:
        points: Compositions of the space.
        seeds: Seeds at the end.
        most: Steps at most.
        costs: What a run takes.
        seconds: Seconds of all workers together.

    Raises:
        CseError: If it allows no race.
    """
    least = min(LEAST_STEPS, most)
    for count in range(points, min(LEAST_POINTS, points) - 1, -1):
        if Budget(count, least, seeds).seconds(costs) > seconds:
            continue
        low, high = least, most
        while low < high:
            middle = (low + high + 1) // 2
            fits = Budget(count, middle, seeds).seconds(costs) <= seconds
            low, high = (middle, high) if fits else (low, middle - 1)
        return Budget(count, low, seeds)
    needed = Budget(min(LEAST_POINTS, points), least, seeds).seconds(costs) / seconds
    what = f"a race of this model takes {needed:.1f} times as long"
    raise CseError(what, where="--minutes", hint="allow more minutes, or name fewer --seeds")
