"""What a page of a study is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cse_core.errors import CseError
from cse_study.definition.points import Point
from cse_study.definition.reading import Definition
from cse_study.execution.folder import StudyFolder
from cse_study.execution.jobs import Scoring
from cse_study.measures.item_files import Cosines, read_cosines
from cse_study.pages.grouping import Group
from cse_study.pages.run_files import read_run
from cse_study.results.claims import Verdict
from cse_study.results.rows import Row
from cse_study.results.table import Line


@dataclass(frozen=True)
class Results:
    """What a page of a study is made of.

    Attributes:
        definition: The study.
        points: The chosen points.
        rows: A row for each point and seed.
        tables: Lines of each shown score, by what the study calls it.
        folder: Of all studies.
        scoring: How runs were scored.
        verdicts: What the runs say of the study's claims.
    """

    definition: Definition
    points: Sequence[Point]
    rows: Sequence[Row]
    tables: Mapping[str, Sequence[Line]]
    folder: StudyFolder
    scoring: Scoring | None
    verdicts: Sequence[Verdict] = ()

    @cached_property
    def done(self) -> list[Row]:
        """Return the rows of finished runs."""
        return [row for row in self.rows if row.status == "done"]

    def of_point(self, point: Point) -> list[Row]:
        """Return the finished rows of a point."""
        return [row for row in self.done if row.point.number == point.number]

    def group(self, point: Point) -> Group | None:
        """Return the runs of a point; None where it has none."""
        if point.number not in self._groups:
            self._groups[point.number] = self._group(point)
        return self._groups[point.number]

    @cached_property
    def _groups(self) -> dict[int, Group | None]:
        return {}

    def _group(self, point: Point) -> Group | None:
        runs = []
        for row in self.of_point(point):
            try:
                runs.append(read_run(self.folder.run(row.key)))
            except CseError:  # untrained, or made elsewhere
                continue
        return Group(point.label, tuple(runs)) if runs else None

    @cached_property
    def elsewhere(self) -> int:
        """Return how many runs have scores alone: others made them, and packed what they said."""
        keys = {row.key for row in self.done}
        return sum(self.folder.without_model(key) for key in keys)

    def cosines(self, row: Row) -> Cosines:
        """Return gold scores and cosines of the pairs that a run was scored on, by set."""
        if self.scoring is None:
            return {}
        return read_cosines(self.folder.pairs(row.key, self.scoring.key))
