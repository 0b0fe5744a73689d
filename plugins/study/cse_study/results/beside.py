"""The paper's tables, and our scores beside the numbers that it prints."""

from __future__ import annotations

import numpy as np

from cse_study.results.table import Line, Results, Table, number


def beside_paper(results: Results) -> list[Table]:
    """Return the paper's tables with what was run here, and the differences to its numbers.

    An interval is that of our score, from the same draws as between points: the paper's number
    is taken as it is printed.
    """
    study, shown = results.definition.study, results.definition.block(results.variant)
    runs: dict[str, int] = {}
    for line in (line for part in results.tables.values() for line in part):
        label = line.point.label_without(study.tuned)
        runs[label] = max(runs.get(label, 0), line.seeds)
    rows = [_beside(results, wanted, line) for wanted, part in results.tables.items()
            for line in part
            if line.paper is not None and line.seeds and not line.stands_for]  # fmt: skip
    tables = []
    if rows and study.kind == "train":
        heads = ["point", "score", "paper", "here", "seeds", "here - paper"]
        words = (f"paper: {shown.block if shown else ''}; here: {results.variant or 'starter'}; "
                 "the interval is that of our score")  # fmt: skip
        tables.append(Table(heads, rows, words, "Beside the paper"))
    labels = {results.definition.row(label): label for label in results.definition.labels}
    for table in results.definition.printed:
        heads, cells = ["row", *table.columns], []
        for row, printed in table.rows.items():
            texts = [printed[name].text if name in printed else "" for name in table.columns]
            count = runs.get(labels.get(row, ""), 0)
            here = f"seeds: {count}" if study.kind == "train" else "run"
            if not count:
                here = "not run" if row in labels else "no study"
            cells.append([row, *texts, *([here] if table is shown else [])])
        heads += ["here"] if table is shown else []
        words = "" if table is shown else "not run with this encoder or on these texts"
        title = f"{table.place or results.definition.name} as printed, {table.block}"
        tables.append(Table(heads, cells, words, title.rstrip(", ")))
    return tables


def _beside(results: Results, wanted: str, line: Line) -> list[str]:
    """Return a point's score beside the number that the paper prints.

    Beside a mean of some sets of a suite, or one of them, that is the mean of the paper's numbers
    of these; where the paper does not print them, the table has no difference.
    """
    paper, spread, same = line.paper or 0.0, line.paper_deviation, True
    if wanted.endswith(".mean") and line.score.rpartition(".")[0] not in ("mean", wanted):
        runs = results.scored_points(line.score).get(line.point.number, {})
        label = line.point.label_without(results.definition.study.tuned)
        sets = next(iter(runs.values()))[1].sets
        cells = [results.definition.cell(results.variant, label, name.lower()) for name in sets]
        values = [cell.value for cell in cells if cell and cell.value is not None]
        if same := bool(sets) and len(values) == len(sets):
            paper, spread = float(np.mean(values)), None
    gap = f"{(line.mean or 0.0) - paper:+.2f}" if same else "other sets"
    if same and line.interval:
        low, high = (end - paper for end in line.interval)
        gap += f" [{low:+.2f}, {high:+.2f}]"
    numbers = [number(paper, spread), number(line.mean, line.deviation)]
    return [line.label, line.score, *numbers, str(line.seeds), gap]
