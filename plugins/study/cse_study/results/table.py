"""The tables of a study: points with their mean, the paper's number, differences and claims."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cse_cli.api import markdown_table, plain
from cse_study.definition.reading import Definition, Point
from cse_study.definition.schema import Claim
from cse_study.execution.folder import StudyFolder
from cse_study.execution.jobs import Scoring
from cse_study.results.bootstrap import DRAWS, LEVEL, Difference, compared, draws_of_run, holm
from cse_study.results.rows import ANY_TEST, Row, Shown, first_score

NOT_SHOWN = "no difference shown"
ONE_SEED = "one seed, nothing to draw from"
SAME_OF_ALL = "the same with every seed, nothing to draw from"
WITH_ONE_SEED = "{} with this seed"
"""Other items would hardly turn it; another seed, of which nothing is known, may."""
HOLDS, CONTRADICTED, OPEN = "holds", "does not hold", "cannot be decided"

_MOST_COLUMNS = 9
"""Of a table of facts; one with more is turned."""
Scored = Mapping[int, tuple[Row, Shown]]
"""The runs of a point by seed, each with the score that is looked at."""


@dataclass(frozen=True)
class Table:
    """A table of text; its first column names the rows.

    Attributes:
        caption: What its columns are, in a line or two.
        title: What is in it; empty where that is said elsewhere.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    title: str = ""

    def markdown(self) -> str:
        """Return it as a table of Markdown, of whose markup a cell may have bold words."""
        rows = [["**".join(map(plain, cell.split("**"))) for cell in row] for row in self.rows]
        return markdown_table(list(map(plain, self.heads)), rows)


@dataclass(frozen=True)
class Line:
    """A point in the table of one score.

    Attributes:
        label: What tables call the point; the trials of a model without training are left out.
        score: Full name of the score.
        mean: Over runs; None without a finished one.
        deviation: Over runs; None with one.
        seeds: How many finished runs there are; a model without training counts once.
        difference: To the baseline; None where nothing can be compared.
        p: Corrected for the number of comparisons of the table.
        words: ``higher`` or ``lower``, ``with this seed`` where there is one, ``no difference
            shown``, ``baseline``, or why nothing is said.
        stands_for: What was to be shown, where no run has it and another score stands in.
        interval: The ends of the 95% interval of the mean, drawn as that of a difference is.
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
    interval: tuple[float, float] | None = None

    @property
    def shown(self) -> bool:
        """Tell whether its difference is shown, which tables print in bold."""
        return self.words.startswith(("higher", "lower"))


@dataclass(frozen=True)
class Verdict:
    """What the runs say of a claim.

    Attributes:
        score: The full name of what decides; empty without runs.
        difference: Of the point that should be better to the other one; None without runs.
        p: Corrected for the number of claims.
        words: ``holds``, ``does not hold`` or ``cannot be decided``.
        paper: The difference in the paper; None where it does not print both numbers.
    """

    claim: Claim
    score: str
    difference: Difference | None
    p: float | None
    words: str
    paper: float | None = None


@dataclass(frozen=True)
class Results:
    """What finished runs of a study say; ``rows`` has one for each chosen point and seed.

    ``variant`` names the paper's numbers, where it has several: those of an encoder.
    """

    definition: Definition
    points: Sequence[Point]
    rows: Sequence[Row]
    folder: StudyFolder
    scoring: Scoring | None
    variant: str = ""

    @cached_property
    def done(self) -> list[Row]:
        """Return the rows of finished runs."""
        return [row for row in self.rows if row.status == "done"]

    def of_point(self, point: Point) -> list[Row]:
        """Return the finished rows of a point."""
        return [row for row in self.done if row.point.number == point.number]

    @cached_property
    def tables(self) -> dict[str, list[Line]]:
        """Return the lines of each shown score, by what the study calls it."""
        study = self.definition.study
        wanted = study.scores.shown or [ANY_TEST]
        if study.kind != "train":
            names = dict.fromkeys(name for row in self.rows for name in row.scores)
            wanted = study.scores.shown or list(study.values) or list(names)
        known = {name for name in wanted if any(row.shown(name) for row in self.done)}
        printed = self.definition.block(self.variant)
        if study.kind != "train" and printed is not None:
            known |= {*printed.columns} & {*wanted}  # what is not measured has the paper's
        tables: dict[str, list[Line]] = {}
        for name in wanted:
            # Another score stands in where none was measured, beside one that was it says nothing.
            if name in known or not known:
                lines = _corrected(self._lines(name, stand_in=not known))
                shown = {line.score for part in tables.values() for line in part}
                if not known and {line.score for line in lines} <= shown:
                    continue  # it stands in already
                tables[name] = [replace(line, stands_for="" if known else name) for line in lines]
        return tables

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

    def _lines(self, name: str, *, stand_in: bool) -> list[Line]:
        study, scored = self.definition.study, self.scored_points(name, stand_in=stand_in)
        untrained = {row.point.number for row in self.rows if row.untrained}
        lines: list[Line] = []
        for point in self.points:
            printed = self.definition.cell(self.variant, point.label_without(study.tuned), name)
            runs = scored.get(point.number, {})
            once = {row.key: (row, shown) for row, shown in runs.values()}.values()
            values = [shown.value for _, shown in once]
            around = self.around(once, 0.0) if study.kind == "train" else None
            line = Line(
                point=point,
                label=point.label_without(study.tuned)
                if point.number in untrained
                else point.label,
                score=next((shown.name for _, shown in runs.values()), name),
                mean=float(np.mean(values)) if values else None,
                deviation=float(np.std(values, ddof=1)) if len(values) > 1 else None,
                seeds=len(values),
                paper=printed.value if printed else None,
                paper_deviation=printed.deviation if printed else None,
                interval=(around.low, around.high) if around else None,
            )
            base = baseline_of(self.definition, self.points, point)
            if point is base:
                line = replace(line, words="baseline" if len(self.points) > 1 else "")
            elif values and base.number in scored and study.kind == "train":
                line = self._compared(line, runs, scored[base.number])
            lines.append(line)
        return lines

    def _compared(self, line: Line, runs: Scored, base: Scored) -> Line:
        """Return a line with its difference to the baseline."""
        if {row.key for row, _ in runs.values()} == {row.key for row, _ in base.values()}:
            return replace(line, words="the same runs as the baseline")
        delta = self.difference(runs, base)
        words = ONE_SEED if len(runs.keys() & base.keys()) < 2 else SAME_OF_ALL
        return replace(line, difference=delta, words="" if delta else words)

    def around(self, runs: Iterable[tuple[Row, Shown]], number: float) -> Difference | None:
        """Return the difference of some runs' mean to a number, which has no error."""
        runs = list(runs)
        drawn = [draws_of_run(self.folder, self.scoring, *run) for run in runs]
        draws = [each[0] - number for each in drawn if each is not None]
        return compared([shown.value - number for _, shown in runs], draws, 0)

    def difference(self, own: Scored, other: Scored) -> Difference | None:
        """Compare the runs of a point with those of another one with the same seeds."""
        differences, drawn, items = [], [], 0
        for seed in sorted(own.keys() & other.keys()):
            both = (own[seed], other[seed])
            here, base = (draws_of_run(self.folder, self.scoring, *pair) for pair in both)
            (_, shown), (_, beside) = both
            differences.append(shown.value - beside.value)
            if here and base and shown.sets == beside.sets:
                drawn.append(here[0] - base[0])
                items = here[1]
        return compared(differences, drawn, items)

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """The verdict of the runs on each claim of the study.

        A claim holds, or does not, where its corrected p is below the level of all tables; one seed
        decides nothing, since of other seeds nothing is known. No other score stands in for one
        that was not measured, and claims without runs count in the correction: which of them are
        decided does not depend on what else was run.
        """
        study = self.definition.study
        of_label = {point.label_without(study.tuned): point.number for point in self.points}
        names: list[str] = []
        differences: list[Difference | None] = []
        for claim in study.claims:
            scored = self.scored_points(claim.score or next(iter(study.scores.shown), ANY_TEST))
            better, than = (scored.get(of_label.get(x, 0), {}) for x in (claim.better, claim.than))
            names.append(next((shown.name for _, shown in better.values()), ""))
            differences.append(self.difference(better, than) if better and than else None)
        corrected = holm([1.0 if delta is None else delta.p for delta in differences])
        verdicts = []
        for claim, name, delta, p in zip(study.claims, names, differences, corrected, strict=True):
            words = OPEN
            if delta is not None and delta.seeds > 1 and p < LEVEL:
                words = HOLDS if (delta.value > 0) != claim.lower else CONTRADICTED
            p_ = None if delta is None else p
            verdicts.append(Verdict(claim, name, delta, p_, words, self._in_paper(claim)))
        return verdicts

    def _in_paper(self, claim: Claim, block: str | None = None) -> float | None:
        """Return the difference that a claim is of in the paper, of an encoder."""
        name = claim.score or self.definition.first_score
        cells = [self.definition.cell(self.variant if block is None else block, label, name)
                 for label in (claim.better, claim.than)]  # fmt: skip
        better, than = (cell.value if cell else None for cell in cells)
        return None if better is None or than is None else better - than

    def _contradicted(self, claim: Claim) -> list[str]:
        """Return the encoders for which the paper's own numbers contradict a claim."""
        blocks = dict.fromkeys(table.block for table in self.definition.printed)
        of_blocks = {block: self._in_paper(claim, block) for block in blocks}
        return [f"{block} {delta:+.2f}".strip() for block, delta in of_blocks.items()
                if delta is not None and (delta > 0) == claim.lower]  # fmt: skip

    def layout(self, *, page: bool = False) -> list[Table]:
        """Return a table for each shown score, or one on a page and where none are compared."""
        lines = [line for part in self.tables.values() for line in part]
        compared_ = any(line.difference is not None for line in lines)
        together = self.definition.study.kind != "train" or (len(self.tables) > 1 and not compared_)
        if (together or (page and len(self.tables) > 1)) and self.tables:
            tables = [self._together()]
        else:
            tables = [self._alone(wanted, part) for wanted, part in self.tables.items()]
        return [*tables, *self._claims()]

    def _alone(self, wanted: str, lines: Sequence[Line]) -> Table:
        """Return the table of one score."""
        scores = list(dict.fromkeys(line.score for line in lines if line.seeds))
        compared_ = any(line.difference is not None for line in lines)
        paper = any(line.paper is not None for line in lines)
        around = any(line.interval for line in lines)
        heads = ["point", "seeds", "mean", *(["its 95% interval"] if around else [])]
        heads += ["paper"] if paper else []
        heads += ["difference", "p"] if compared_ else []
        rows = []
        for line in lines:
            cells = [line.label, str(line.seeds), number(line.mean, line.deviation)]
            cells += [ends_text(line.interval)] if around else []
            cells += [number(line.paper, line.paper_deviation)] if paper else []
            cells += (
                [interval_text(line.difference), _p(line.p, line.difference)] if compared_ else []
            )
            rows.append([*cells, line.words if line.seeds else self._unscored(line.point)])
        caption_ = caption(lines, self.definition)
        return Table([*heads, "in words"], rows, caption_, ", ".join(scores) or wanted)

    def _unscored(self, point: Point) -> str:
        """Return why a point has no score."""
        rows = (row for row in self.rows if row.point.number == point.number)
        trained = any(row.facts.get("steps") is not None for row in rows)
        return "trained, not scored on these sets" if trained else "no finished run"

    def _together(self) -> Table:
        """Return one table with a column for each number, the paper's in columns of their own."""
        first = next(iter(self.tables.values()))
        facts = self.definition.study.kind != "train"
        heads, columns = ["point"], [[line.label for line in first]]
        for wanted, lines in self.tables.items():
            heads.append(next((line.score for line in lines if line.seeds), wanted))
            columns.append([_fact(line.mean) if facts else _cell(line) for line in lines])
            if any(line.paper is not None for line in lines):
                heads.append("paper")
                columns.append(
                    [
                        _fact(line.paper) if facts else number(line.paper, line.paper_deviation)
                        for line in lines
                    ]
                )
        rows = list(map(list, zip(*columns, strict=True)))
        if facts and len(columns) > _MOST_COLUMNS:  # a column for each point instead
            heads, *rows = map(list, zip(heads, *rows, strict=True))
        tables = [caption(lines, self.definition) for lines in self.tables.values()]
        words = "; ".join(
            dict.fromkeys(part for text in tables if text for part in text.split("; "))
        )
        words += f"; bold: p < {LEVEL}" if any(line.difference for line in first) else ""
        return Table(heads, rows, words, self.definition.name)

    def _claims(self) -> list[Table]:
        """Return the table of claims; none where the study has no claims."""
        rows = []
        paper = any(verdict.paper is not None for verdict in self.verdicts)
        for verdict in self.verdicts:
            claim, delta = verdict.claim, verdict.difference
            rows.append([
                f"{claim.says} ({claim.source})" if claim.source else claim.says, verdict.score,
                *([f"{verdict.paper:+.2f}" if verdict.paper is not None else ""] if paper else []),
                interval_text(delta), _p(verdict.p, delta), str(delta.seeds) if delta else "",
                verdict.words,
            ])  # fmt: skip
        heads = ["claim", "score", *(["paper"] if paper else []), "difference", "p", "seeds",
                 "in words"]  # fmt: skip
        words = "p corrected by Holm for the number of claims"
        against = {claim.says: self._contradicted(claim) for claim in self.definition.study.claims}
        words += "".join(f"; the paper's own numbers contradict {says!r}: {', '.join(blocks)}"
                         for says, blocks in against.items() if blocks)  # fmt: skip
        return [Table(heads, rows, words, "Claims")] if rows else []

    @property
    def ran(self) -> str:
        """The models, dates and machines of the runs, in a line."""
        seconds = sum(float(row.facts.get("seconds") or 0) for row in self.done)
        took = f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.1f} minutes"
        names = ("model", "steps", "commit", "date", "processor", "device", "precision", "threads",
                 "scored_by", "setting")  # fmt: skip
        facts = {name: _distinct(row.facts.get(name) for row in self.done) for name in names}
        words = [f"{name.replace('_', ' ')}: {', '.join(values)}"
                 for name, values in facts.items() if values]  # fmt: skip
        many = "s" * (len(self.done) != 1)
        what = "runs" if self.definition.study.kind == "train" else "calls"
        runs = f"{len(self.done)} row{many} of finished {what}"
        return "; ".join([runs + (f", {took} of training" if seconds else ""), *words])


def _distinct(facts: Iterable[Any]) -> list[str]:
    """Return facts, each once, without the places of files: a page is read on other machines."""
    return sorted({
        " ".join(os.path.basename(word) if os.path.isabs(word) else word
                 for word in str(fact).split())
        for fact in facts if fact
    })  # fmt: skip


def baseline_of(definition: Definition, points: Sequence[Point], point: Point) -> Point:
    """Find the baseline of a point: the named one, or the first of the same place."""
    study = definition.study
    place = point.value(study.within)
    near = [other for other in points if other.value(study.within) == place]
    named = (other for other in near if other.label_without(study.tuned) == study.baseline)
    return next(named, near[0])


def _corrected(lines: Sequence[Line]) -> list[Line]:
    """Return the lines with p corrected for their number, and what can be said in words."""
    values = iter(holm([line.difference.p for line in lines if line.difference is not None]))
    rows = []
    for line in lines:
        if line.difference is not None:
            words = "higher" if line.difference.value > 0 else "lower"
            p = next(values)
            if p >= LEVEL:
                words = NOT_SHOWN
            elif line.difference.seeds == 1:
                words = WITH_ONE_SEED.format(words)
            line = replace(line, p=p, words=words)
        rows.append(line)
    return rows


def caption(lines: Sequence[Line], definition: Definition) -> str:
    """Describe the columns in a line or two."""
    paper = definition.study.paper
    said = [f"paper: {paper.metric}" + (f", {paper.model}" if paper.model else "")]
    said = said if paper.metric and any(line.paper is not None for line in lines) else []
    absent = next((line.stands_for for line in lines if line.stands_for and line.seeds), "")
    said += [f"{absent} was not measured, this stands in for it"] if absent else []
    tested = [line for line in lines if line.difference is not None]
    if tested:
        score = tested[0].score
        items = "labelled texts" if ".accuracy" in score else "test pairs"
        items = "dev pairs" if ".dev." in score else items
        items = "documents" if ".recall@" in score else items
        items = "queries" if score.endswith((".ndcg@10", ".mrr@10", ".map")) else items
        how = f"Student's t over seeds; {DRAWS:,} paired draws of {items}"
        if not any(line.difference.items for line in tested if line.difference is not None):
            how = "a paired t-test over seeds alone: other test texts would change it too"
        said.append(f"difference: to the baseline, with the 95% interval of {how}")
        said.append(f"p corrected by Holm for {len(tested)} comparison{'s' * (len(tested) != 1)}")
    return "; ".join(said)


def _cell(line: Line) -> str:
    """Return mean, deviation and difference, bold where it is shown."""
    text = number(line.mean, line.deviation)
    if line.difference is None:
        return text
    shown = "**" if line.shown else ""
    return f"{text}; {shown}{interval_text(line.difference)}{shown}"


def number(value: float | None, deviation: float | None = None) -> str:
    """Return a number with its deviation, an empty text where there is none."""
    if value is None:
        return ""
    text = f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.3g}"
    return text if deviation is None else f"{text} ± {deviation:.2f}"


def _fact(value: float | None) -> str:
    """Return a number other than a score, an integer as one, an empty text where there is none."""
    if value is None:
        return ""
    return plain_number(int(value) if float(value).is_integer() else value)


def interval_text(delta: Difference | None) -> str:
    """Return a difference with its interval, an empty text where there is none."""
    return f"{delta.value:+.2f} [{delta.low:+.2f}, {delta.high:+.2f}]" if delta else ""


def ends_text(ends: tuple[float, float] | None) -> str:
    """Return an interval, an empty text where there is none."""
    return f"[{ends[0]:.2f}, {ends[1]:.2f}]" if ends else ""


def _p(value: float | None, delta: Difference | None) -> str:
    """Return p, with a sign before one that is the least that the draws can show."""
    bound = "≤ " if delta is not None and delta.floor else ""
    return "" if value is None else f"{bound}{value:.3g}"


def plain_number(value: object) -> str:
    """Return a number with as many digits as can be read."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or (abs(value) >= 1e4 and value == int(value)):
        return f"{int(value):,}"
    return f"{value:.2f}" if 1 <= abs(value) < 1e4 else f"{value:.4g}"
