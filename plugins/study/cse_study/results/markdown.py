"""A study as a page of Markdown: its tables and claims, and the command and runs behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cse_study.definition.reading import Definition
from cse_study.results.claims import Verdict
from cse_study.results.rows import Row
from cse_study.results.show import interval, number
from cse_study.results.table import Line, caption


def page_of(
    definition: Definition,
    tables: Mapping[str, Sequence[Line]],
    verdicts: Sequence[Verdict],
    rows: Sequence[Row],
    command: str,
) -> str:
    """Return the page; nothing on it is written by hand but what the study's file says."""
    study = definition.study
    parts = [f"# {study.summary}", f"Written by `{command}`."]
    parts += [f"{definition.paper}, {study.source}."] if definition.paper else []
    parts += [study.note.strip()] if study.note else []
    for wanted, lines in tables.items():
        names = list(dict.fromkeys(line.score for line in lines if line.seeds))
        parts += [f"## {', '.join(names) or wanted}", _table(lines), caption(lines, definition)]
    if verdicts:
        header = ["claim", "difference", "p", "in words"]
        cells = [
            [v.said, interval(v.difference),
             "" if v.p is None else f"{v.p:.3g}", v.words]
            for v in verdicts
        ]  # fmt: skip
        parts += ["## Claims", _markdown(header, cells)]
    parts.append(_provenance(rows))
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(lines: Sequence[Line]) -> str:
    paper = any(line.paper is not None for line in lines)
    header = ["point", "seeds", "mean", *(["paper"] if paper else []), "difference", "p", ""]
    cells = []
    for line in lines:
        row = [line.point.label, str(line.seeds), number(line.mean, line.deviation)]
        row += [number(line.paper, line.paper_deviation)] if paper else []
        row += [interval(line.difference), "" if line.p is None else f"{line.p:.3g}"]
        cells.append([*row, line.words if line.seeds else "no finished run"])
    return _markdown(header, cells)


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(each.replace("|", "\\|") for each in line) + " |" for line in lines
    )


def _provenance(rows: Sequence[Row]) -> str:
    """Return what the runs ran on, each fact once."""
    done = [row for row in rows if row.status == "done"]
    words = []
    for name in ("commit", "platform", "device", "precision", "threads", "scored_by", "setting"):
        found = sorted({str(row.facts.get(name)) for row in done if row.facts.get(name)})
        words += [f"{name.replace('_', ' ')}: {', '.join(found)}"] if found else []
    seconds = sum(float(row.facts.get("seconds") or 0) for row in done)
    return (
        f"{len(done)} rows of finished runs, {seconds / 3600:.1f} hours of training; "
        + "; ".join(words)
    )
