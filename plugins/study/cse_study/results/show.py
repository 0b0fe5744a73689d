"""The table of a study for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cse_cli.terminal.console import plain_table, say, say_table
from cse_study.definition.reading import Definition
from cse_study.results.bootstrap import Difference
from cse_study.results.claims import Verdict
from cse_study.results.table import Line, caption


def show_tables(definition: Definition, tables: Mapping[str, Sequence[Line]]) -> None:
    """Print a table for each shown score, with what its columns are below."""
    if definition.study.kind != "train" and tables:
        _show_together(definition, tables)
        return
    for wanted, lines in tables.items():
        scores = list(dict.fromkeys(line.score for line in lines if line.seeds))
        title = f"{definition.name}: {', '.join(scores) or wanted}"
        compared = any(line.difference is not None for line in lines)
        paper = any(line.paper is not None for line in lines)
        columns = ["point", "seeds", "mean", "deviation"]
        columns += ["paper"] if paper else []
        columns += ["difference", "p"] if compared else []
        table = plain_table(title, [*columns, "in words"])
        for line in lines:
            cells = [line.point.label, str(line.seeds), number(line.mean), number(line.deviation)]
            if paper:
                cells.append(number(line.paper, line.paper_deviation))
            if compared:
                cells.append(interval(line.difference))
                cells.append("" if line.p is None else f"{line.p:.3g}")
            table.add_row(*cells, line.words if line.seeds else "no finished run")
        say_table(table)
        if said := caption(lines, definition):
            say(said)


def show_claims(verdicts: Sequence[Verdict]) -> None:
    """Print what the runs say of each claim."""
    if not verdicts:
        return
    table = plain_table("claims", ["claim", "difference", "p", "in words"])
    for verdict in verdicts:
        p = "" if verdict.p is None else f"{verdict.p:.3g}"
        table.add_row(verdict.said, interval(verdict.difference), p, verdict.words)
    say_table(table)


def interval(found: Difference | None) -> str:
    """Return a difference with its interval, an empty text where there is none."""
    if found is None:
        return ""
    return f"{found.value:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"


def _show_together(definition: Definition, tables: Mapping[str, Sequence[Line]]) -> None:
    """Print one table with a column for each number, the paper's in columns of their own."""
    table = plain_table(definition.name, ["point"])
    columns: list[list[str]] = []
    for name, lines in tables.items():
        table.add_column(name, overflow="fold")
        columns.append([number(line.mean, line.deviation) for line in lines])
        if any(line.paper is not None for line in lines):
            table.add_column("paper", overflow="fold")
            columns.append([number(line.paper, line.paper_deviation) for line in lines])
    points = [line.point.label for line in next(iter(tables.values()))]
    for label, *cells in zip(points, *columns, strict=True):
        table.add_row(label, *cells)
    say_table(table)
    if said := caption(next(iter(tables.values())), definition):
        say(said)


def number(value: float | None, deviation: float | None = None) -> str:
    """Return a number with its deviation, an empty text where there is none."""
    if value is None:
        return ""
    text = f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.3g}"
    return text if deviation is None else f"{text} ± {deviation:.2f}"
