"""The tables of a study as rows of text: the terminal, Markdown and HTML lay out the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cse_study.definition.reading import Definition
from cse_study.results.bootstrap import Difference
from cse_study.results.claims import Verdict
from cse_study.results.table import Line, caption
from cse_study.results.text_table import Table


def score_tables(definition: Definition, tables: Mapping[str, Sequence[Line]]) -> list[Table]:
    """Return a table for each shown score, or one of all where no points are compared."""
    compared = any(line.difference is not None for lines in tables.values() for line in lines)
    together = definition.study.kind != "train" or (len(tables) > 1 and not compared)
    if together and tables:
        return [_together(definition, tables)]
    return [_alone(definition, wanted, lines) for wanted, lines in tables.items()]


def claims_table(verdicts: Sequence[Verdict]) -> Table | None:
    """Return what the runs say of each claim; None without claims."""
    rows = [
        [
            verdict.said,
            verdict.score,
            interval(verdict.difference),
            _p(verdict.p),
            "" if verdict.difference is None else str(verdict.difference.seeds),
            verdict.words,
        ]
        for verdict in verdicts
    ]
    heads = ["claim", "score", "difference", "p", "seeds", "in words"]
    words = "p corrected by Holm for the number of claims"
    return Table(heads, rows, words, "Claims") if rows else None


def interval(found: Difference | None) -> str:
    """Return a difference with its interval, an empty text where there is none."""
    if found is None:
        return ""
    return f"{found.value:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"


def number(value: float | None, deviation: float | None = None) -> str:
    """Return a number with its deviation, an empty text where there is none."""
    if value is None:
        return ""
    text = f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.3g}"
    return text if deviation is None else f"{text} ± {deviation:.2f}"


def _alone(definition: Definition, wanted: str, lines: Sequence[Line]) -> Table:
    """Return the table of one score."""
    scores = list(dict.fromkeys(line.score for line in lines if line.seeds))
    compared = any(line.difference is not None for line in lines)
    paper = any(line.paper is not None for line in lines)
    heads = ["point", "seeds", "mean", *(["paper"] if paper else [])]
    heads += ["difference", "p"] if compared else []
    rows = []
    for line in lines:
        cells = [line.label, str(line.seeds), number(line.mean, line.deviation)]
        cells += [number(line.paper, line.paper_deviation)] if paper else []
        cells += [interval(line.difference), _p(line.p)] if compared else []
        rows.append([*cells, line.words if line.seeds else "no finished run"])
    title = ", ".join(scores) or wanted
    return Table([*heads, "in words"], rows, caption(lines, definition), title)


def _together(definition: Definition, tables: Mapping[str, Sequence[Line]]) -> Table:
    """Return one table with a column for each number, the paper's in columns of their own."""
    heads = ["point"]
    columns: list[list[str]] = []
    for wanted, lines in tables.items():
        heads.append(next((line.score for line in lines if line.seeds), wanted))
        columns.append([number(line.mean, line.deviation) for line in lines])
        if any(line.paper is not None for line in lines):
            heads.append("paper")
            columns.append([number(line.paper, line.paper_deviation) for line in lines])
    first = next(iter(tables.values()))
    rows = [list(cells) for cells in zip([line.label for line in first], *columns, strict=True)]
    return Table(heads, rows, caption(first, definition), definition.name)


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
