"""Draws of what the scores of runs are measured on, kept beside the scores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cse_core.runtime.atomic_files import atomic_file
from cse_study.execution.folder import StudyFolder
from cse_study.execution.jobs import Scoring
from cse_study.measures.item_files import read_cosines, read_items
from cse_study.results.bootstrap import draws_of, draws_of_hits, hits_of
from cse_study.results.rows import Row
from cse_study.results.scores import Shown

_Behind = tuple[int, Callable[[], NDArray[np.float64]]]
"""How many items are behind a score, and what draws from them."""


class Draws:
    """Scores of runs in draws of their test items; they are the same each time."""

    def __init__(self, folder: StudyFolder, scoring: Scoring | None) -> None:
        self.folder, self.scoring = folder, scoring

    def of(self, row: Row, shown: Shown) -> tuple[NDArray[np.float64], int] | None:
        """Return a run's score in every draw ``[draws]``, and of how many items it is.

        None where what is behind the score was not kept.
        """
        if self.scoring is None or not shown.sets:
            return None
        find = self._of_pairs if shown.number == "spearman" else self._of_items
        behind = find(row.key, self.scoring.key, shown)
        if behind is None:
            return None
        count, draw = behind
        name = f"{self.scoring.key}.{'+'.join(shown.sets)}.{shown.number}.npy"
        kept = self.folder.scores(row.key, self.scoring.key).with_name(name)
        if kept.is_file():
            return np.load(kept), count
        drawn = draw()
        with atomic_file(kept) as beside, beside.open("wb") as file:
            np.save(file, drawn)
        return drawn, count

    def _of_pairs(self, key: str, scoring: str, shown: Shown) -> _Behind | None:
        cosines = read_cosines(self.folder.pairs(key, scoring))
        if not set(shown.sets) <= cosines.keys():
            return None
        count = sum(len(cosines[name][0]) for name in shown.sets)
        return count, lambda: draws_of(cosines, shown.sets)

    def _of_items(self, key: str, scoring: str, shown: Shown) -> _Behind | None:
        file = self.folder.items(key, scoring)
        items = read_items(file) if file.is_file() else {}
        hits = [hits_of(items.get(name, {}), shown.number) for name in shown.sets]
        known = [each for each in hits if each is not None]
        if len(known) < len(hits):
            return None
        return sum(len(each) for each in known), lambda: draws_of_hits(known)
