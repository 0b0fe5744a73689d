"""Axes of trials: which of their places each setting of the other axes keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from cse_core.errors import CseError
from cse_core.training.run_folder import RESULT
from cse_study.definition.points import Point
from cse_study.definition.schema import Study
from cse_study.execution.folder import StudyFolder, read_json

if TYPE_CHECKING:
    from cse_study.planning.composing import Cell, PlannedRun

Group = tuple[tuple[str, str], ...]
"""The labels of a point on the axes that are not tuned."""


def groups_of(study: Study, points: Iterable[Point]) -> dict[Group, list[Point]]:
    """Return the points among which one is kept, by what they have in common."""
    found: dict[Group, list[Point]] = {}
    for point in points:
        group = tuple(
            (axis, label) for axis, label in point.labels.items() if axis not in study.tuned
        )
        found.setdefault(group, []).append(point)
    return found


def trial_seeds(study: Study, seeds: Sequence[int]) -> tuple[int, ...]:
    """Return the seeds that every place is tried with."""
    assert study.tune is not None
    return tuple(study.tune.seeds) or tuple(seeds[:1])


def check_selected(run: PlannedRun) -> None:
    """Refuse trials that have no dev set.

    Raises:
        CseError: If it has none.
    """
    if not (run.selected or run.untrained):
        raise CseError(
            "a dev score chooses among trials, and the run has no dev set",
            where="tune",
            hint='write dev = "@dev" in [settings], and name a file with --dev',
        )


def kept_points(study: Study, cells: Sequence[Cell], folder: StudyFolder) -> frozenset[int]:
    """Return the numbers of the points that are kept, of groups whose trials have all ended.

    A trial that failed is not chosen; where all failed, none is. Of equal scores the first counts.
    """
    of_point: dict[int, list[str]] = {}
    for cell in cells:
        of_point.setdefault(cell.point.number, []).append(cell.run.key)
    points = {cell.point.number: cell.point for cell in cells}
    kept = set()
    for group in groups_of(study, points.values()).values():
        if len({key for point in group for key in of_point[point.number]}) == 1:
            kept.add(group[0].number)  # trained by none of the trials
            continue
        scores: Mapping[int, float | None] = {
            point.number: _score(of_point[point.number], folder) for point in group
        }
        ended = [n for n, value in scores.items() if value is not None]
        if len(ended) == len(group):
            best = max(ended, key=lambda number: scores[number] or 0.0)
            if scores[best] != float("-inf"):
                kept.add(best)
    return frozenset(kept)


def _score(keys: Sequence[str], folder: StudyFolder) -> float | None:
    """Return the mean dev score of some runs; None where one has not ended."""
    values = []
    for key in keys:
        result = read_json(folder.run(key) / RESULT)
        if result:
            score = result.get("score")
            values.append(float("-inf") if score is None else float(score))
        elif folder.beside(key, "failed.json").is_file():
            values.append(float("-inf"))
        else:
            return None
    return sum(values) / len(values)
