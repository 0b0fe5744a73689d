"""The tables of a study: points with their mean, the paper's number, differences and claims."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cse import LEVEL, Difference, compared, corrected
from cse_cli.api import markdown_table, plain
from cse_study.definition.reading import Point, labels_of
from cse_study.definition.schema import Claim
from cse_study.execution.folder import ITEMS
from cse_study.results.bootstrap import draws_of_run
from cse_study.results.comparisons import Comparisons, Pair, Scored, baseline_of, other_format
from cse_study.results.rows import ANY_TEST, Row, Shown, scores_of_words

NOT_SHOWN = "no difference shown"
ONE_SEED = "one seed, nothing to draw from"
SAME_OF_ALL = "the same with every seed, nothing to draw from"
NO_SEED = "no seed in common with the baseline"
OTHER_FORMAT = "trained in another number format than the baseline"
WITH_ONE_SEED = "{} with this seed"
"""Other items would hardly turn it; another seed, of which nothing is known, may."""
ON_THESE_TEXTS = "{} on these test texts"
"""Seeds alone were drawn; other test texts, of which nothing is known, may turn it."""
TOO_SMALL = "too small to matter"
HOLDS, CONTRADICTED, OPEN = "holds", "does not hold", "cannot be decided"
NOT_MEASURED = "not measured"
NOT_ABOVE_START = "better, but not shown above {}"
NO_EFFECT = "cannot be decided: the part that varies has no shown effect"

_ITEMS = {".test.recall@": "queries", ".dev.recall@": "queries", ".ndcg@": "queries",
          ".mrr@": "queries", ".map": "queries", ".recall@": "documents", ".dev.": "dev pairs",
          ".accuracy": "labelled texts"}  # fmt: skip
"""What is drawn, by a part of a score's name; else test pairs."""
_MOST_COLUMNS = 9
"""Of a table of facts; one with more is turned."""


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
        words: ``higher`` or ``lower``, ``with this seed`` where there is one, ``too small to
            matter``, ``no difference shown``, ``baseline``, or why nothing is said.
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
        words: ``holds``, ``does not hold``, ``too small to matter``, ``cannot be decided``,
            ``not measured``, or that it is not shown above the start.
        paper: The difference in the paper; None where it does not print both numbers.
        start: The difference to the encoder before training, where the claim needs it.
    """

    claim: Claim
    score: str
    difference: Difference | None
    words: str
    paper: float | None = None
    start: Difference | None = None


@dataclass(frozen=True)
class Results(Comparisons):
    """What finished runs of a study say, as tables."""

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
                lines = self._lines(name, stand_in=not known)
                shown = {line.score for part in tables.values() for line in part}
                if not known and {line.score for line in lines} <= shown:
                    continue  # it stands in already
                tables[name] = [replace(line, stands_for="" if known else name) for line in lines]
        return tables

    def _lines(self, name: str, *, stand_in: bool) -> list[Line]:
        study, scored = self.definition.study, self.scored_points(name, stand_in=stand_in)
        untrained = {row.point.number for row in self.rows if row.untrained}
        named = Counter(point.label_without(study.tuned) for point in self.points)
        lines: list[Line] = []
        for point in self.points:
            printed = self.definition.cell(self.variant, point.label_without(study.tuned), name)
            base = baseline_of(self.definition, self.points, point)
            runs, others = scored.get(point.number, {}), scored.get(base.number, {})
            # A mean is over the seeds that its comparison is of.
            shared = {seed: run for seed, run in runs.items() if seed in others} or runs
            once = {row.key: (row, shown) for row, shown in shared.values()}.values()
            values = [shown.value for _, shown in once]
            around = self.around(once) if study.kind == "train" else None
            line = Line(
                point=point,
                label=point.label_without(study.tuned)
                if point.number in untrained
                or not (runs or named[point.label_without(study.tuned)] > 1)
                else point.label,
                score=next((shown.name for _, shown in runs.values()), name),
                mean=float(np.mean(values)) if values else None,
                deviation=float(np.std(values, ddof=1)) if len(values) > 1 else None,
                seeds=len(values),
                paper=printed.value if printed else None,
                paper_deviation=printed.deviation if printed else None,
                interval=(around.low, around.high) if around else None,
            )
            if self.is_added(point.number):
                line = replace(line, label=f"{line.label} (added)")
            if point is base:
                line = replace(line, words="baseline" if len(self.points) > 1 else "")
            elif values and others and study.kind == "train":
                line = self._compared(line, (name, point.number, base.number), runs, others)
            elif values and base not in self.points:
                without = base.label_without(study.tuned)
                line = replace(line, words=f"its baseline, {without}, was not chosen")
            lines.append(line)
        return lines

    def _compared(self, line: Line, pair: Pair, runs: Scored, base: Scored) -> Line:
        """Return a line with its difference to the baseline."""
        if {row.key for row, _ in runs.values()} == {row.key for row, _ in base.values()}:
            return replace(line, words="the same runs as the baseline")
        if delta := self.differences.get(pair):
            return replace(line, difference=delta, words=self._words(pair[0], delta))
        words = (NO_SEED, ONE_SEED, SAME_OF_ALL)[min(len(runs.keys() & base.keys()), 2)]
        return replace(line, words=OTHER_FORMAT if other_format(runs, base) else words)

    def around(self, runs: Iterable[tuple[Row, Shown]]) -> Difference | None:
        """Return some runs' mean as a difference to nothing, which has no error."""
        runs = list(runs)
        drawn = [draws_of_run(self.folder, self.scoring, *run, self.draws) for run in runs]
        draws = [each[0] for each in drawn if each is not None]
        raw = compared([shown.value for _, shown in runs], draws, 0)
        return corrected([raw], 1)[0] if raw else None

    def _words(self, name: str, delta: Difference) -> str:
        if delta.within(self.definition.study.scores.smallest_of(name)):
            return _limited(TOO_SMALL, delta)
        if delta.p >= LEVEL:
            return NOT_SHOWN
        return _limited("higher" if delta.value > 0 else "lower", delta)

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """The verdict of the runs on each claim of the study.

        A claim holds where its interval is above zero, and that of its point over the start; it
        does not hold where the interval excludes the smallest difference that matters. One seed
        decides nothing, since of other seeds nothing is known. No other score stands in for one
        that was not measured.
        """
        study = self.definition.study
        of_label, first = self.of_label, next(iter(study.scores.shown), ANY_TEST)
        verdicts = []
        for claim in study.claims:
            wanted = claim.score or first
            scored = self.scored_points(wanted)
            runs = scored.get(of_label.get(claim.better, 0), {})
            delta = self.difference_of(wanted, claim.better, claim.than) if scored else None
            start = self.difference_of(wanted, claim.better, self.start_of(claim))
            words = self._verdict(claim, wanted, delta, start)
            if study.without and words not in (OPEN, NOT_MEASURED) and not self.has_effect:
                words = NO_EFFECT
            name = next((shown.name for _, shown in runs.values()), "")
            verdicts.append(Verdict(claim, name, delta, words, self._in_paper(claim), start))
        return verdicts

    def _verdict(
        self, claim: Claim, name: str, delta: Difference | None, start: Difference | None
    ) -> str:
        smallest = self.definition.study.scores.smallest_of(name)
        if delta is None or delta.seeds < 2:
            return NOT_MEASURED if delta is None else OPEN
        if delta.within(smallest):
            return _limited(TOO_SMALL, delta)
        delta = delta.turned if claim.lower else delta
        if delta.high < smallest:
            return _limited(CONTRADICTED, delta)
        if delta.low <= 0:
            return OPEN
        needed = self.start_of(claim)
        if needed and not (start and start.low > 0):
            return _limited(NOT_ABOVE_START.format(needed), delta)
        return _limited(HOLDS, delta)

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
                if delta is not None and (-delta if claim.lower else delta) <= 0]  # fmt: skip

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
            cells += [interval_text(line.difference), _p(line.difference)] if compared_ else []
            rows.append([*cells, line.words if line.seeds else self._unscored(line.point)])
        for method, values in self.words.items():
            if wanted in values:
                rows.append([method, "", number(values[wanted]), *[""] * (len(heads) - 3), "words"])
        return Table([*heads, "in words"], rows, self.caption(wanted), ", ".join(scores) or wanted)

    @cached_property
    def words(self) -> dict[str, dict[str, float]]:
        """What words alone score, by the method's name, for each shown score that has them."""
        found: dict[str, dict[str, float]] = {}
        for name in self.tables if self.definition.study.kind == "train" else ():
            for row in self.done:
                shown = row.shown(name)
                for method, value in scores_of_words(shown, row.results).items() if shown else ():
                    found.setdefault(method, {}).setdefault(name, value)
        return found

    def caption(self, wanted: str) -> str:
        """Describe the columns of a shown score."""
        definition, lines = self.definition, self.tables[wanted]
        paper = definition.study.paper
        said = [f"paper: {paper.metric}" + (f", {paper.model}" if paper.model else "")]
        said = said if paper.metric and any(line.paper is not None for line in lines) else []
        absent = next((line.stands_for for line in lines if line.stands_for and line.seeds), "")
        said += [f"{absent} was not measured, this stands in for it"] if absent else []
        deltas = [line.difference for line in lines if line.difference is not None]
        if deltas:
            score = next(line.score for line in lines if line.difference is not None)
            items = next((what for part, what in _ITEMS.items() if part in score), "test pairs")
            how = f"Student's t over seeds; {self.draws:,} paired draws of {items}"
            if not any(delta.items for delta in deltas):
                how = "a paired t-test over seeds alone, so other test texts would change it"
            said.append(f"difference: to the baseline, by {how}")
            count = len(definition.points)
            if any(line.difference and line.point.number <= count for line in lines):
                said.append(
                    f"p and the 95% intervals are corrected by Holm for the {len(self.family)} "
                    "comparisons of the study's file"
                )
            sizes = [delta.detectable for delta in deltas]
            said.append(
                f"{score}: the smallest difference that matters is "
                f"{definition.study.scores.smallest_of(wanted):g}, the smallest that four of five "
                f"repetitions would show {min(sizes):.2f} to {max(sizes):.2f}"
            )
        many = {line.difference.seeds for line in lines if line.difference is not None}
        # An untrained baseline is one run, the same with every seed.
        many |= {line.seeds for line in lines if line.words == "baseline" and line.seeds > 1}
        if len(many) > 1:
            said.append("means: over the seeds that a point shares with its baseline")
        return "; ".join(said)

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
        for method, values in self.words.items():
            at = iter(columns)
            next(at).append(method)
            for wanted, lines in self.tables.items():
                next(at).append(number(values.get(wanted)))
                if any(line.paper is not None for line in lines):
                    next(at).append("")
        rows = list(map(list, zip(*columns, strict=True)))
        if facts and len(columns) > _MOST_COLUMNS:  # a column for each point instead
            heads, *rows = map(list, zip(heads, *rows, strict=True))
        tables = map(self.caption, self.tables)
        words = "; ".join(
            dict.fromkeys(part for text in tables if text for part in text.split("; "))
        )
        tested = any(line.difference for line in first)
        words += f"; bold: p < {LEVEL}, and not too small to matter" if tested else ""
        return Table(heads, rows, words, self.definition.name)

    def _claims(self) -> list[Table]:
        """Return the table of claims; none where the study has no claims."""
        rows = []
        paper = any(verdict.paper is not None for verdict in self.verdicts)
        start = self.definition.study.start
        for verdict in self.verdicts:
            claim, delta = verdict.claim, verdict.difference
            rows.append([
                f"{claim.says} ({claim.source})" if claim.source else claim.says, verdict.score,
                *([f"{verdict.paper:+.2f}" if verdict.paper is not None else ""] if paper else []),
                interval_text(delta), _p(delta),
                *([interval_text(verdict.start)] if start else []),
                str(delta.seeds) if delta else "", verdict.words,
            ])  # fmt: skip
        heads = ["claim", "score", *(["paper"] if paper else []), "difference", "p",
                 *([f"over {start}"] if start else []), "seeds", "in words"]  # fmt: skip
        words = f"p and intervals are corrected for the same {len(self.family)} comparisons"
        against = {claim.says: self._contradicted(claim) for claim in self.definition.study.claims}
        words += "".join(f"; the paper's own numbers contradict {says!r}: {', '.join(blocks)}"
                         for says, blocks in against.items() if blocks)  # fmt: skip
        return [Table(heads, rows, words, "Claims")] if rows else []

    @property
    def notes(self) -> list[str]:
        """What limits the tables, a line each: items, ends of grids, a part without an effect."""
        study, lines = self.definition.study, list[str]()
        if self.added:
            lines.append(
                "Added are rows that the study's file lacks, chosen by others: "
                f"{'; '.join(self.added)}. Their p and intervals are corrected for the comparisons "
                f"of the study's file ({len(self.family)}) and their own ({len(self.outside)}); "
                "those of the study's own points are the same without them."
            )
        scored = {row.key for row in self.done if self.scoring is not None and row.results}
        bare = [key for key in scored if not any(
            self.folder.scores(key, f"{self.scoring.key}{ending}").is_file()
            for ending in ITEMS if self.scoring is not None)]  # fmt: skip
        if bare and self.differences:
            lines.append(
                f"The test items of {len(bare)} of {len(scored)} runs were not kept, so their "
                "tests draw seeds only and hold for these test texts only."
            )
        if study.without and self.differences and not self.has_effect:
            base = study.baseline or self.definition.labels[0]
            lines.append(
                f"It is not shown that {base} differs from {study.without}, so the differences "
                "between the settings of this part can neither support nor contradict the paper."
            )
        if self.tables and study.kind == "train" and not self.words:
            lines.append("Words alone were not scored on these sets: no untrained model was.")
        trained = [p for p in self.points if any(not row.untrained for row in self.of_point(p))]
        for axis in study.axes:
            values, *more = axis.values.values()
            if more or not all(isinstance(value, int | float) for value in values):
                continue  # such places have no order
            order = [label for _, label in sorted(zip(values, labels_of(axis), strict=True))]
            at_end = [p.label for p in trained if p.labels[axis.called] in (order[0], order[-1])]
            if axis.called in study.tuned and axis.size > 1 and at_end:
                lines.append(
                    f"The best {axis.called} lies at an end of those that were tried, so a better "
                    f"one may lie beyond: {'; '.join(at_end)}."
                )
        return lines

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


def _limited(words: str, delta: Difference) -> str:
    """Return words with what they are limited to."""
    words = words if delta.items else ON_THESE_TEXTS.format(words)
    return words if delta.seeds > 1 else WITH_ONE_SEED.format(words)


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


def _p(delta: Difference | None) -> str:
    """Return p, with a sign before one that is the least that the draws can show."""
    if delta is None:
        return ""
    return f"{'≤ ' if delta.floor and delta.p < 1 else ''}{delta.p:.3g}"


def plain_number(value: object) -> str:
    """Return a number with as many digits as can be read."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or (abs(value) >= 1e4 and value == int(value)):
        return f"{int(value):,}"
    return f"{value:.2f}" if 1 <= abs(value) < 1e4 else f"{value:.4g}"
