"""The draws of a run's test items, kept beside its scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cse import draws_of
from cse_core.files import atomic_file
from cse_study.execution.folder import StudyFolder
from cse_study.execution.jobs import Scoring
from cse_study.measures import read_cosines, read_items
from cse_study.planning.composing import digest
from cse_study.results.rows import DEV_SETS, MEAN, Row, Shown

DRAWS, _MOST = 10_000, 250
"""How often items are drawn, and for how many comparisons that is enough."""


def draws_for(family: int) -> int:
    """Return how often items are drawn, so that some p of so many comparisons can be shown."""
    return DRAWS if family <= _MOST else 100 * family


def draws_of_run(
    folder: StudyFolder, scoring: Scoring | None, row: Row, shown: Shown, draws: int
) -> tuple[NDArray[np.float64], int] | None:
    """Return a run's score in every draw of its test items ``[draws]``, and of how many it is.

    The draws are kept beside the scores. None where what is behind the score was not kept.
    """
    if scoring is None or not shown.sets:
        return None
    key = scoring.of_dev if shown.sets == DEV_SETS else scoring.key
    file = folder.scores(row.key, f"{key}.tsv")
    if shown.number in ("spearman", MEAN):
        cosines = read_cosines(file)
        names = shown.sets
        if names == DEV_SETS and shown.name == MEAN:
            names = tuple(cosines)
        elif names == DEV_SETS:  # the one of several that chose; a data set goes by its name
            name = shown.name.removesuffix(".spearman")
            names = tuple(cosines.keys() & {name, name.removesuffix(".dev")})
        if not names or not (cosines and cosines.keys() >= {*names}):
            return None
        sets: list[Any] = [cosines[name] for name in names]
    else:
        items = file.with_suffix(".items.tsv")
        stored = read_items(items) if items.is_file() else {}
        known = [hits_of(stored.get(name, {}), shown.number) for name in shown.sets]
        sets = [(hits,) for hits in known if hits is not None and len(hits) > 1]
        if len(sets) < len(known):
            return None
    of = digest([*shown.sets, shown.name, draws])
    kept = folder.scores(row.key, f"{key}.{of}.npy")
    if not kept.is_file():
        drawn = draws_of(sets, draws)
        with atomic_file(kept) as beside, beside.open("wb") as opened:
            np.save(opened, drawn)
    return np.load(kept), sum(len(columns[0]) for columns in sets)


def hits_of(items: Mapping[str, NDArray[np.float64]], number: str) -> NDArray[np.float64] | None:
    """Return the values ``[N]`` of items, from 0 to 1, that a number is the mean of, else None.

    It is a measure of a judged query, or 1 for a hit.
    """
    if number in items:
        return items[number]
    name, _, cut = number.partition("@")
    if name == "recall" and cut.isdigit() and "rank" in items:
        return np.asarray(items["rank"] <= int(cut), dtype=float)
    return items["right"] if name == "accuracy" and "right" in items else None
