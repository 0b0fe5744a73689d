"""What ``cse eval`` found, as JSON and as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cse_cli.terminal.console import console, echo_err, say_table, warn
from cse_evaluation.cli.graded import Sets
from cse_evaluation.cli.probes import Groups
from cse_evaluation.cli.retrieval import retrieval_json

if TYPE_CHECKING:
    from cse_evaluation.retrieval import RetrievalResult
    from cse_evaluation.sts import Result
    from cse_evaluation.task_result import TaskResult


def scores_json(
    models: list[str],
    described: list[str],
    results: list[list[Result]],
    sets: Sets,
    classified: list[list[TaskResult]],
    tasks: Groups,
    retrieved: list[list[RetrievalResult]],
) -> dict[str, Any]:
    """Return all models' scores, flat for one model, and what was not there."""
    from cse_evaluation.report import results_json
    from cse_evaluation.task_report import tasks_json

    scored = []
    for number, (name, description) in enumerate(zip(models, described, strict=True)):
        found: dict[str, Any] = {"model": name, "encoder": description}
        found |= results_json(results[number] if results else [])
        found["results"] |= tasks_json(classified[number] if classified else [])
        found["results"] |= retrieval_json(retrieved[number] if retrieved else [])
        for each in sets.synthetic:
            found["results"][each]["synthetic"] = True
        scored.append(found)
    rest: dict[str, Any] = {"missing": [*sets.missing, *tasks.missing]}
    folder = sets.folder or tasks.folder
    if folder is not None:
        rest["folder"] = str(folder)
    return {**scored[0], **rest} if len(scored) == 1 else {"models": scored, **rest}


def show_scores(
    models: list[str],
    results: list[list[Result]],
    sets: Sets,
    subsets: bool,
) -> None:
    """Print graded pairs' scores: two models side by side, others each by itself."""
    from cse_evaluation.report import comparison_table, results_tables

    width = console().width
    if len(models) == 2:
        say_table(comparison_table(results[0], results[1], (models[0], models[1]), width))
    else:
        for name, own in zip(models, results, strict=True):
            for table in results_tables(own, name, subsets, width):
                say_table(table)
    for name, own in zip(models, results, strict=True):
        for result in own:
            for key, value in result.metrics.items():
                echo_err(f"{name}, {result.name}: {key} {value:.4f} over {result.pairs} pairs")
    if sets.synthetic:
        warn(
            f"{', '.join(sorted(sets.synthetic))}: synthetic sentences, made by a grammar for "
            "trying things; no benchmark"
        )
