"""Every comparison of a study: which there are, and what the runs say of those that were run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cse import LEVEL, Comparison, Difference, compared, corrected
from cse_study.definition.reading import Definition, Point
from cse_study.definition.schema import Claim
from cse_study.execution.folder import StudyFolder
from cse_study.execution.jobs import Scoring
from cse_study.results.bootstrap import draws_for, draws_of_run
from cse_study.results.rows import ANY_TEST, Row, Shown, first_score

Scored = Mapping[int, tuple[Row, Shown]]
"""The runs of a point by seed, each with the score that is looked at."""
Pair = tuple[str, int, int]
"""A comparison: a score, the number of a point, and that of the one that it is compared with."""


@dataclass(frozen=True)
class Comparisons:
    """What finished runs of a study say of differences.

    ``rows`` has one for each chosen point and seed; ``variant`` names the paper's numbers, where it
    has several: those of an encoder. ``added`` says of each point that the file lacks, whose
    numbers follow those of its points, where it is from.
    """

    definition: Definition
    points: Sequence[Point]
    rows: Sequence[Row]
    folder: StudyFolder
    scoring: Scoring | None
    variant: str = ""
    added: tuple[str, ...] = ()

    @cached_property
    def done(self) -> list[Row]:
        """Return the rows of finished runs."""
        return [row for row in self.rows if row.status == "done"]

    def of_point(self, point: Point) -> list[Row]:
        """Return the finished rows of a point."""
        return [row for row in self.done if row.point.number == point.number]

    def scored_points(self, name: str, *, stand_in: bool = False) -> dict[int, Scored]:
        """Return the finished runs that have a score, by the number of their point and by seed.

        With ``stand_in`` another score is taken of a run that does not have this one.
        """
        scored: dict[int, dict[int, tuple[Row, Shown]]] = {}
        for row in self.done:
            shown = row.shown(name)
            if shown is None and stand_in:
                shown = first_score(row.scores, row.results, name)
            if shown is not None:
                scored.setdefault(row.point.number, {})[row.seed] = (row, shown)
        return dict(scored)

    @cached_property
    def family(self) -> frozenset[tuple[str, frozenset[str]]]:
        """The comparisons of the study's file: each score, and the labels of both points.

        They are those of every point with its baseline, and those of claims; which of them were run
        changes nothing.
        """
        points = self.definition.points
        pairs = self._with_baselines(points, points)
        pairs |= {(name, frozenset(labels)) for name, *labels in self._claimed}
        return frozenset(pair for pair in pairs if len(pair[1]) > 1)

    @cached_property
    def outside(self) -> frozenset[tuple[str, frozenset[str]]]:
        """The comparisons of added points with their baselines, which no file has fixed before."""
        added = [point for point in self.points if self.is_added(point.number)]
        pairs = self._with_baselines(added, [*self.definition.points, *added])
        return frozenset(pair for pair in pairs if len(pair[1]) > 1)

    @cached_property
    def draws(self) -> int:
        """How often test items are drawn."""
        return draws_for(len(self.family | self.outside))

    def is_added(self, number: int) -> bool:
        """Tell whether a point is one that the study's file lacks, by its number."""
        return number > len(self.definition.points)

    def _with_baselines(
        self, points: Sequence[Point], among: Sequence[Point]
    ) -> set[tuple[str, frozenset[str]]]:
        study = self.definition.study
        return {
            (name, frozenset({point.label_without(study.tuned), base.label_without(study.tuned)}))
            for name in study.scores.shown or [ANY_TEST]
            for point in points
            for base in [baseline_of(self.definition, among, point)]
        }

    @cached_property
    def _claimed(self) -> list[tuple[str, str, str]]:
        """The comparisons that claims need: a score, the better point, and the other one."""
        study = self.definition.study
        first = next(iter(study.scores.shown), ANY_TEST)
        pairs = [(claim.score or first, claim.better, than)
                 for claim in study.claims for than in (claim.than, self.start_of(claim))
                 if than]  # fmt: skip
        base = study.baseline or self.definition.labels[0]
        return pairs + ([(first, base, study.without)] if study.without else [])

    def start_of(self, claim: Claim) -> str:
        """Return the label of the start that a claim's point has to be above, or nothing."""
        start = self.definition.study.start
        return "" if claim.lower or start in (claim.better, claim.than) else start

    @cached_property
    def differences(self) -> Mapping[Pair, Difference]:
        """The differences that the runs show, corrected for those of the study's whole file.

        Those of added points are corrected for all of these and their own: points of others change
        no number of the study's own.
        """
        if self.definition.study.kind != "train":
            return {}
        of_label = self.of_label
        bases = {point.number: baseline_of(self.definition, self.points, point).number
                 for point in self.points}  # fmt: skip
        pairs = [(name, *numbers) for name in self.definition.study.scores.shown or [ANY_TEST]
                 for numbers in bases.items()]  # fmt: skip
        pairs += [(name, of_label.get(better, 0), of_label.get(than, 0))
                  for name, better, than in self._claimed]  # fmt: skip
        made: dict[Pair, Comparison] = {}
        known = {name: self.scored_points(name) for name in dict.fromkeys(p[0] for p in pairs)}
        if not any(known.values()):
            known = {name: self.scored_points(name, stand_in=True) for name in known}
        for name, one, other in pairs:
            runs, base = known[name].get(one), known[name].get(other)
            twice = {(name, one, other), (name, other, one)} & made.keys()
            if one == other or twice or not (runs and base):
                continue
            if found := self._comparison(runs, base):
                made[name, one, other] = found
        own = {pair: one for pair, one in made.items() if not any(map(self.is_added, pair[1:]))}
        values = corrected(list(made.values()), len(self.family | self.outside))
        differences = dict(zip(made, values, strict=True))
        values = corrected(list(own.values()), len(self.family))
        differences |= dict(zip(own, values, strict=True))
        return differences | {(name, other, one): delta.turned
                         for (name, one, other), delta in differences.items()}  # fmt: skip

    @property
    def of_label(self) -> dict[str, int]:
        """The number of each chosen point by its label without tuned axes."""
        tuned = self.definition.study.tuned
        return {point.label_without(tuned): point.number for point in self.points}

    def _comparison(self, own: Scored, other: Scored) -> Comparison | None:
        """Compare the runs of a point with those of another one with the same seeds."""
        if other_format(own, other):
            return None
        differences, drawn, items = [], [], 0
        for seed in sorted(own.keys() & other.keys()):
            both = (own[seed], other[seed])
            here, base = (
                draws_of_run(self.folder, self.scoring, *pair, self.draws) for pair in both
            )
            (row, shown), (row_, beside) = both
            if row.key == row_.key:
                return None
            differences.append(shown.value - beside.value)
            if here and base and shown.sets == beside.sets:
                drawn.append(here[0] - base[0])
                items = here[1]
        return compared(differences, drawn, items)

    @property
    def has_effect(self) -> bool:
        """Whether the part that the points vary has an effect that is shown and that matters."""
        study, name = self.definition.study, self.definition.first_score
        delta = self.difference_of(name, study.baseline or self.definition.labels[0], study.without)
        if delta is None or delta.p >= LEVEL:
            return False
        return not delta.within(study.scores.smallest_of(name))

    def difference_of(self, name: str, one: str, other: str) -> Difference | None:
        """Return the difference of a point to another one, both by their labels, if known."""
        numbers = [self.of_label.get(label, 0) for label in (one, other)]
        return self.differences.get((name, *numbers))  # type: ignore[arg-type]


def baseline_of(definition: Definition, points: Sequence[Point], point: Point) -> Point:
    """Find the baseline of a point: the named one, or the first of the same place.

    It is that of the study's file, whichever of its points are among ``points``.
    """
    study = definition.study

    def place(of: Point) -> list[Any]:
        return [of.value(name) for name in study.within]

    near = [other for other in (*definition.points, *points) if place(other) == place(point)]
    labels = [other.label_without(study.tuned) for other in near]
    label = study.baseline if study.baseline in labels else labels[0]
    same = [other for other in near if other.label_without(study.tuned) == label]
    return next((other for other in same if other in points), same[0])


def other_format(own: Scored, other: Scored) -> bool:
    """Tell whether two points were trained in different number formats."""
    rows = [row for runs in (own, other) for row, _ in runs.values()]
    return len({row.facts.get("precision") for row in rows if not row.untrained} - {None, ""}) > 1
