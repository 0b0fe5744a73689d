"""A study for a paper: its table in LaTeX with booktabs and as CSV, its figures as PDF files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from cse import LEVEL
from cse_core.files import atomic_file, atomic_write, disk_errors
from cse_study.pages.figures import Picture
from cse_study.results.rows import write_rows
from cse_study.results.table import Line, Results, ends_text, number

Spread = Literal["deviation", "interval"]
_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "±": r"$\pm$", "≤": r"$\leq$", "–": "--", **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}  # fmt: skip


def write_latex(
    results: Results, pictures: Sequence[Picture], path: Path, command: str, spread: Spread
) -> None:
    """Write the table to a file, as CSV beside it, and the figures as ``-1.pdf`` and so on.

    A column is a shown score: means with their deviation over seeds, or with their 95% interval.
    Bold are those whose difference to the baseline the study's page prints in bold.
    """
    with disk_errors(path):
        atomic_write(path, f"% {command}\n{_table(results, spread)}")
        write_rows(list(_rows(results)), path.with_suffix(".csv"))
        for count, picture in enumerate(pictures, 1):
            file = path.with_name(f"{path.stem}-{count}.pdf")
            with atomic_file(file) as beside:
                beside.write_bytes(picture.pdf())


def _table(results: Results, spread: Spread) -> str:
    tables = results.tables
    scores = [next((line.score for line in lines if line.seeds), wanted)
              for wanted, lines in tables.items()]  # fmt: skip
    rows = [[escaped(lines[0].label), *(_cell(line, spread) for line in lines)]
            for lines in zip(*tables.values(), strict=True)]  # fmt: skip
    said = "; ".join(map(results.caption, tables))
    parts = [results.definition.study.summary, *dict.fromkeys(filter(None, said.split("; ")))]
    parts.append(f"bold: p < {LEVEL}")
    parts.append("±: standard deviation over seeds" if spread == "deviation" else
                 "in brackets: 95% interval of the mean")  # fmt: skip
    body = [" & ".join(cells) + r" \\" for cells in [[*map(escaped, ["", *scores])], *rows]]
    return "\n".join([
        r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{l{'r' * len(scores)}}}",
        r"\toprule", body[0], r"\midrule", *body[1:], r"\bottomrule", r"\end{tabular}",
        rf"\caption{{{escaped('; '.join(parts))}.}}",
        rf"\label{{tab:{results.definition.name}}}", r"\end{table}", "",
    ])  # fmt: skip


def _cell(line: Line, spread: Spread) -> str:
    mean = number(line.mean) or "–"
    mean = rf"\textbf{{{mean}}}" if line.shown else escaped(mean)
    if spread == "interval":
        return f"{mean} {ends_text(line.interval)}".rstrip()
    return mean if line.deviation is None else rf"{mean} $\pm$ {line.deviation:.2f}"


def _rows(results: Results) -> Iterator[dict[str, Any]]:
    """Yield a row for each point and score."""
    for lines in results.tables.values():
        for line in lines:
            delta = line.difference
            low, high = line.interval or (None, None)
            yield {
                "score": line.score, **line.point.labels, "seeds": line.seeds, "mean": line.mean,
                "deviation": line.deviation, "low": low, "high": high, "paper": line.paper,
                "difference": delta and delta.value, "difference low": delta and delta.low,
                "difference high": delta and delta.high, "p": delta and delta.p,
                "words": line.words,
            }  # fmt: skip


def escaped(text: str) -> str:
    """Return a text as LaTeX prints it."""
    return re.sub("|".join(map(re.escape, _SPECIAL)), lambda sign: _SPECIAL[sign[0]], text)
