"""How many compositions race, and for how many steps, within some minutes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

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
    """What a run takes, in seconds.

    Attributes:
        step: A step of training.
        run: What a run takes beside its steps: its start, and scoring it in the race.
        judging: Scoring a model at the end.
        workers: Runs at a time.
    """

    step: float
    run: float
    judging: float
    workers: int = 1

    def trained(self, runs: int, steps: int) -> float:
        """Return the seconds until so many runs of the race's methods are trained and scored."""
        return math.ceil(runs / self.workers) * (self.run + _SLOWER * self.step * steps)


@dataclass(frozen=True)
class Budget:
    """How a race is laid out.

    Attributes:
        points: Compositions that begin.
        steps: Steps of the winner, and of the last rung.
        seeds: Seeds with which the winner, and what it is judged beside, are trained at the end.
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
        """Return the seconds after the race: the winner with other seeds, then those beside it.

        The start and the model are scored too, and both agree with BM25 or not.
        """
        costs = replace(costs, run=costs.run + costs.judging)
        trained = [costs.trained(runs, self.steps)
                   for runs in (self.seeds, self.seeds * _BESIDE)]  # fmt: skip
        return sum(trained) + 4 * costs.judging

    def seconds(self, costs: Costs) -> float:
        """Return the seconds of all."""
        race = sum(costs.trained(points, steps) for steps, points in self.rungs)
        return race + self.judging(costs)


def beginning(groups: Mapping[int, str], count: int) -> list[int]:
    """Return the points that begin: the first of each group, then the second of each, and so on.

    ``groups`` has the place of each point on the first axis, such as its method, in the order of
    the space, which is one of preference.
    """
    turns: dict[str, int] = {}
    rank = {}
    for number, group in groups.items():
        rank[number] = turns[group] = turns.get(group, 0) + 1
    return sorted(sorted(groups, key=rank.__getitem__)[:count])


def lay_out(
    points: int, seeds: int, most: int, costs: Costs, seconds: float, gone: float = 0.0
) -> Budget:
    """Return the race with the most points, and for these the most steps, that the time allows.

    Args:
        points: Compositions of the space.
        seeds: Seeds at the end.
        most: Steps at most.
        costs: What a run takes.
        seconds: What the whole may take.
        gone: What it has taken.

    Raises:
        CseError: If it allows no race.
    """
    least = min(LEAST_STEPS, most)
    for count in range(points, min(LEAST_POINTS, points) - 1, -1):
        if Budget(count, least, seeds).seconds(costs) > seconds - gone:
            continue
        low, high = least, most
        while low < high:
            middle = (low + high + 1) // 2
            fits = Budget(count, middle, seeds).seconds(costs) <= seconds - gone
            low, high = (middle, high) if fits else (low, middle - 1)
        return Budget(count, low, seeds)
    needed = math.ceil((gone + Budget(min(LEAST_POINTS, points), least, seeds).seconds(costs)) / 60)
    what = f"a race of this model takes {needed} minutes at least"
    hint = "allow more minutes, or name fewer --seeds"
    raise CseError(what, where="--minutes", value=seconds / 60, hint=hint)
