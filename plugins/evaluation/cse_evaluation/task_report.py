"""Results of classification tasks as JSON and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cse_evaluation.task_result import CLASSIFIERS, Accuracy, TaskResult

if TYPE_CHECKING:
    from rich.table import Table


def tasks_json(results: Sequence[TaskResult]) -> dict[str, Any]:
    """Return ``{"mr": {"accuracy": …, "folds": 10, "setting": "cross-validation", …}, …}``."""
    return {result.name: result.to_json() for result in results}


def tasks_table(models: Sequence[str], results: Sequence[Sequence[TaskResult]]) -> Table:
    """Return a table of models' scores side by side, a row for each task.

    Args:
        models: Names of the models.
        results: What ``evaluate_tasks`` returned for each, on the same tasks.
    """
    from rich.table import Table

    rows = list(zip(*results, strict=True))
    words = any(result.lexical for result in results[0])
    table = Table(caption=_caption(models, results, words), caption_justify="left")
    table.add_column("task", no_wrap=True)
    table.add_column("setting")
    columns = ["train", "test", *models]
    columns += ["difference"] if len(models) == 2 else []
    columns += [*(["TF-IDF"] if words else []), "majority"]
    for column in columns:
        table.add_column(column, justify="right")
    for row in rows:
        first = row[0]
        cells = [first.name, first.setting, str(first.train), str(first.test)]
        cells += [_scores(result.score) for result in row]
        if len(row) == 2:
            cells.append(f"{row[1].score.accuracy - first.score.accuracy:+.2f}")
        if words:
            cells.append(_scores(first.lexical.score) if first.lexical else "")
        if first.tasks:
            table.add_section()
        table.add_row(*cells, f"{first.majority:.2f}", style="bold" if first.tasks else None)
    return table


def _scores(score: Accuracy) -> str:
    return f"{score.accuracy:.2f}" + ("" if score.f1 is None else f" (F1 {score.f1:.2f})")


def _lengths(models: Sequence[str], results: Sequence[Sequence[TaskResult]]) -> list[str]:
    """Return a line for each model: how long the texts are for it, and what it does with them."""
    lines = []
    for name, own in zip(models, results, strict=True):
        ways: dict[str, list[str]] = {}
        for r in own:
            if r.tokens is not None:
                shown = f"{r.name} {r.tokens.mean:.1f} ({r.tokens.longer:.1f} % longer)"
                ways.setdefault(r.texts, []).append(shown)
        for way, tasks in ways.items():
            lines.append(f"Texts of {name}: {way}; tokens a text: {', '.join(tasks)}.")
    return lines


def _caption(models: Sequence[str], results: Sequence[Sequence[TaskResult]], words: bool) -> str:
    first = [result for result in results[0] if not result.tasks]
    lines = [
        f"Accuracy x100 of {CLASSIFIERS[first[0].classifier]} on frozen vectors; cross-validation: "
        "the mean of the folds."
    ]
    by = dict.fromkeys(f"{r.name} {r.probed.chosen_by}" for r in first if r.probed)
    strength = "C" if first[0].classifier == "exact" else "Weight decay"
    lines.append(f"{strength} was chosen by: {', '.join(by)}.")
    if words:
        units = " or ".join(sorted({r.lexical.units for r in first if r.lexical}))
        lines.append(
            f"TF-IDF: {units}, lower-cased, {CLASSIFIERS['exact']}; idf of training texts."
        )
    lines += _lengths(models, results)
    lines.append("Majority: always the most frequent label of the training part.")
    lazy = sorted({r.name for own in results for r in own if r.probed and not r.probed.converged})
    if lazy:
        lines.append(f"The classifier did not converge: {', '.join(lazy)}.")
    return "\n".join(lines)
