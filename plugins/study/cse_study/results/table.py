"""The table of a study: each point with its mean, the paper's number, and what can be said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cse_study.definition.points import Point
from cse_study.definition.reading import Definition
from cse_study.execution.folder import StudyFolder
from cse_study.execution.jobs import Scoring
from cse_study.results.bootstrap import DRAWS, LEVEL, Difference, compared, holm
from cse_study.results.draws import Draws
from cse_study.results.rows import Row
from cse_study.results.scores import Shown, columns_of, find_shown, first_score

NOT_SHOWN = "no difference shown"
ONE_SEED = "one seed, nothing to draw from"
SAME_OF_ALL = "the same with every seed, nothing to draw from"
WITH_ONE_SEED = "{} with this seed"
"""Other items would hardly turn it; another seed, of which nothing is known, may."""


@dataclass(frozen=True)
class Line:
    """A point in the table of one score.

    Attributes:
        label: What tables call the point; the trials of a model without training are left out.
        score: Full name of the score.
        mean: Over runs; None without a finished one.
        deviation: Over runs; None with one.
        seeds: How many finished runs there are; a model without training counts once.
        paper: The paper's number.
        paper_deviation: And its deviation.
        difference: To the baseline; None where nothing can be compared.
        p: Corrected for the number of comparisons of the table.
        words: ``higher`` or ``lower``, ``with this seed`` where there is one, ``no difference
            shown``, ``baseline``, or why nothing is said.
        stands_for: What was to be shown, where no run has it and another score stands in.
    """

    point: Point
    label: str
    score: str
    mean: float | None
    deviation: float | None
    seeds: int
    paper: float | None = None
    paper_deviation: float | None = None
    difference: Difference | None = None
    p: float | None = None
    words: str = ""
    stands_for: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as data that JSON can hold."""
        found = self.difference
        return {
            "point": self.label,
            "number": self.point.number,
            "axes": dict(self.point.labels),
            "score": self.score,
            "mean": self.mean,
            "deviation": self.deviation,
            "seeds": self.seeds,
            "paper": self.paper,
            "paper_deviation": self.paper_deviation,
            "difference": found and found.value,
            "interval": found and [found.low, found.high],
            "p": found and found.p,
            "p_corrected": self.p,
            "items": found and found.items,
            "words": self.words,
        }


def tables_of(
    definition: Definition,
    points: Sequence[Point],
    rows: Sequence[Row],
    folder: StudyFolder,
    scoring: Scoring | None,
    variant: str = "",
) -> dict[str, list[Line]]:
    """Return the lines of each shown score, by what the study calls it.

    ``variant`` names the paper's numbers, where it has several: those of an encoder.
    """
    study = definition.study
    wanted = columns_of(study.scores.columns)
    if study.kind != "train":
        own = [each for each in study.scores.columns if each.strip()]
        wanted = own or list(study.values) or _numbers(rows)
    done = [row for row in rows if row.status == "done"]
    there = {name for name in wanted if any(_found(name, row) for row in done)}
    tables = {}
    for number, name in enumerate(wanted):
        # Another score stands in where none was measured, beside one that was it says nothing.
        if there and name not in there:
            continue
        scored = scored_points(name, rows, stand_in=not there)
        lines = _lines(scored, name, number, definition, points, rows, folder, scoring, variant)
        tables[name] = [replace(line, stands_for="" if there else name) for line in lines]
    return tables


def _numbers(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.scores))


Scored = Mapping[int, tuple[Row, Shown]]
"""The runs of a point by seed, each with the score that is looked at."""


def scored_points(
    name: str, rows: Sequence[Row], *, stand_in: bool = False
) -> dict[int, dict[int, tuple[Row, Shown]]]:
    """Return the finished runs that have a score, by the number of their point and by seed.

    With ``stand_in`` another score is taken of a run that does not have this one.
    """
    found: dict[int, dict[int, tuple[Row, Shown]]] = {}
    for row in rows:
        shown = _found(name, row) if row.status == "done" else None
        if shown is None and stand_in and row.status == "done":
            shown = first_score(row.scores, row.results, name)
        if shown is not None:
            found.setdefault(row.point.number, {})[row.seed] = (row, shown)
    return found


def _lines(
    shown: Mapping[int, Scored],
    name: str,
    column: int,
    definition: Definition,
    points: Sequence[Point],
    rows: Sequence[Row],
    folder: StudyFolder,
    scoring: Scoring | None,
    variant: str,
) -> list[Line]:
    paper = definition.study.paper.variants.get(variant, definition.study.paper)
    draws = Draws(folder, scoring)
    tuned = definition.study.tuned
    untrained = {row.point.number for row in rows if row.untrained}
    lines: list[Line] = []
    twins: dict[Any, str] = {}
    for point in points:
        of_point = shown.get(point.number, {})
        values = list({row.key: found.value for row, found in of_point.values()}.values())
        line = Line(
            point=point,
            label=point.label_without(tuned) if point.number in untrained else point.label,
            score=next((found.name for _, found in of_point.values()), name),
            mean=float(np.mean(values)) if values else None,
            deviation=float(np.std(values, ddof=1)) if len(values) > 1 else None,
            seeds=len(values),
            paper=paper_number(paper.numbers, name, column, point),
            paper_deviation=paper_number(paper.deviations, name, column, point),
        )
        base = baseline_of(definition, points, point)
        if point is base:
            line = replace(line, words="baseline" if len(points) > 1 else "")
        elif values and base.number in shown and definition.study.kind == "train":
            same = frozenset(row.key for row, _ in of_point.values()), base.number
            if same in twins:  # with --steps, points that differ in their steps alone
                line = replace(line, words=f"the same runs as {twins[same]}")
            else:
                twins[same] = line.label
                line = _compared(line, of_point, shown[base.number], draws)
        lines.append(line)
    return _corrected(lines)


def baseline_of(definition: Definition, points: Sequence[Point], point: Point) -> Point:
    """Return what a point is compared with: the named one, or the first of its own place."""
    study = definition.study
    near = [each for each in points if _place(each, study.within) == _place(point, study.within)]
    named = (each for each in near if each.label_without(study.tuned) == study.baseline)
    return next(named, near[0])


def _place(point: Point, within: str) -> Any:
    """Return the label of a point on an axis, or what stands in a column of it."""
    return point.labels.get(within, point.columns.get(within))


def paper_number(numbers: Any, name: str, column: int, point: Point) -> float | None:
    """Return the paper's number of a point; a plain list is of the first shown score."""
    held = numbers.get(name, []) if isinstance(numbers, Mapping) else numbers if not column else []
    return held[point.number - 1] if point.number <= len(held) else None


def _found(name: str, row: Row) -> Shown | None:
    if name in row.scores and not row.results:
        return Shown(name, row.scores[name])
    return find_shown(name, row.scores, row.results, row.chosen_by)


def _compared(line: Line, of_point: Scored, of_base: Scored, draws: Draws) -> Line:
    """Return a line with its difference to the baseline."""
    if {row.key for row, _ in of_point.values()} == {row.key for row, _ in of_base.values()}:
        return replace(line, words="the same runs as the baseline")
    found = difference_of(of_point, of_base, draws)
    if found is not None:
        return replace(line, difference=found)
    seeds = of_point.keys() & of_base.keys()
    return replace(line, words=ONE_SEED if len(seeds) < 2 else SAME_OF_ALL)


def difference_of(of_point: Scored, of_base: Scored, draws: Draws) -> Difference | None:
    """Return how the runs of a point differ from those of another one with the same seeds."""
    common = sorted(of_point.keys() & of_base.keys())
    drawn_point, drawn_base, items = {}, {}, 0
    for seed in common:
        here, there = draws.of(*of_point[seed]), draws.of(*of_base[seed])
        if (
            here is not None
            and there is not None
            and of_point[seed][1].sets == of_base[seed][1].sets
        ):
            drawn_point[seed], items = here
            drawn_base[seed] = there[0]
    return compared(
        {seed: of_point[seed][1].value for seed in common},
        {seed: of_base[seed][1].value for seed in common},
        drawn_point,
        drawn_base,
        items,
    )


def _corrected(lines: Sequence[Line]) -> list[Line]:
    """Return the lines with p corrected for their number, and what can be said in words."""
    tested = [line for line in lines if line.difference is not None]
    values = iter(holm([line.difference.p for line in tested if line.difference is not None]))
    found = []
    for line in lines:
        if line.difference is None:
            found.append(line)
            continue
        p = next(values)
        words = "higher" if line.difference.value > 0 else "lower"
        if p >= LEVEL:
            words = NOT_SHOWN
        elif line.difference.seeds == 1:
            words = WITH_ONE_SEED.format(words)
        found.append(replace(line, p=p, words=words))
    return found


def _items(lines: Sequence[Line]) -> str:
    """Return what a score is measured on."""
    score = next((line.score for line in lines if line.difference is not None), "")
    if ".recall@" in score:
        return "documents"
    return "labelled texts" if ".accuracy" in score else "test pairs"


def caption(lines: Sequence[Line], definition: Definition) -> str:
    """Return what the columns are, in a line or two."""
    paper = definition.study.paper
    said = [f"paper: {paper.metric}" + (f", {paper.model}" if paper.model else "")]
    said = said if paper.metric and any(line.paper is not None for line in lines) else []
    absent = next((line.stands_for for line in lines if line.stands_for and line.seeds), "")
    said += [f"{absent} was not measured, this stands in for it"] if absent else []
    tested = [line.difference for line in lines if line.difference is not None]
    if tested:
        how = f"of {DRAWS:,} paired draws of {_items(lines)}, Student's t over seeds"
        if not any(each.items for each in tested):
            how = "of a paired t-test over seeds, in which other texts are not"
        said.append(
            f"difference: to the baseline, with the 95% interval {how}; p corrected by Holm for "
            f"{len(tested)} comparison{'s' * (len(tested) != 1)}"
        )
    return "; ".join(said)
