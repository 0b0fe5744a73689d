"""Runs that differ in their seed alone, drawn as one."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from cse_study.pages.comparing import called
from cse_study.pages.drawing import Series
from cse_study.pages.run_files import Run
from cse_study.planning.keys import NO_MATTER

_APART = frozenset(f"train.{name}" for name in ("seed", *NO_MATTER))
"""Options in which runs that are drawn as one may differ."""


@dataclass(frozen=True)
class Group:
    """Runs of equal settings, each with another seed."""

    label: str
    runs: tuple[Run, ...]

    @property
    def seeds(self) -> int:
        """Return how many seeds there are."""
        return len(self.runs)


def groups_of(runs: Sequence[Run]) -> list[Group]:
    """Return runs by their settings without the seed, in the order of the first of each."""
    names = dict(zip(map(id, runs), called(runs), strict=True))
    found: dict[str, list[Run]] = {}
    for run in runs:
        options = {path: value for path, value in run.options.items() if path not in _APART}
        options["texts"] = run.texts
        # Runs with one seed twice are not draws of one thing.
        key = json.dumps(options, sort_keys=True, default=str)
        while any(_seed(each) == _seed(run) for each in found.get(key, [])):
            key += "'"
        found.setdefault(key, []).append(run)
    labels = []
    for each in found.values():
        common = os.path.commonprefix([names[id(run)] for run in each]).rstrip("-_/. ")
        labels.append(names[id(each[0])] if len(each) == 1 else common or each[0].name)
    return [
        Group(label if labels.count(label) == 1 else names[id(each[0])], tuple(each))
        for label, each in zip(labels, found.values(), strict=True)
    ]


def _seed(run: Run) -> object:
    return run.settings.get("train", {}).get("seed")


def places_of(run: Run) -> list[tuple[int, Mapping[str, float]]]:
    """Return the lines of a run with their steps, counted over all rounds."""
    found: list[tuple[int, Mapping[str, float]]] = []
    before, last, number = 0, 0, None
    for line in run.lines:
        if number is not None and line.get("round", 0) != number:
            before, last = before + last, 0
        number, last = line.get("round", 0), int(line["step"])
        found.append((before + last, line))
    return found


def over_steps(groups: Sequence[Group], key: str | Callable[[Run], str | None]) -> list[Series]:
    """Return a key of metrics over steps, a series for each group with its mean and deviation.

    Args:
        groups: The groups.
        key: Of the lines; or what returns it for a run.
    """
    series = []
    for group in groups:
        values: dict[int, list[float]] = {}
        for run in group.runs:
            wanted = key if isinstance(key, str) else key(run)
            for step, line in places_of(run):
                value = line.get(wanted) if wanted is not None else None
                if isinstance(value, int | float) and isfinite(value):
                    values.setdefault(step, []).append(float(value))
        if not values:
            continue
        steps = sorted(values)
        series.append(
            Series(
                group.label,
                steps,
                [statistics.fmean(values[step]) for step in steps],
                [statistics.stdev(values[s]) if len(values[s]) > 1 else None for s in steps],
                [len(values[step]) for step in steps],
            )
        )
    return series


def find_key(run: Run, name: str) -> str | None:
    """Return the key of a run's metrics that a short name means.

    ``dev`` is the score of the dev set that chooses; ``uniformity`` is that of this dev set, or of
    the batch where there is none; any other name is the key itself or its last words.
    """
    keys = list(dict.fromkeys(key for line in run.lines for key in line))
    if name == "dev":
        return next(iter(run.dev_names), None)
    if name in keys:
        return name
    sets = [key.rpartition(".")[0] for key in run.dev_names]
    wanted = [f"{each}.{name}" for each in [*sets, "batch"]]
    return next(
        (key for key in [*wanted, *(k for k in keys if k.endswith(f".{name}"))] if key in keys),
        None,
    )
