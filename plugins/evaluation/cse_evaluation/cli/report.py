"""What ``cse eval`` found, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cse import Difference
from cse_cli.api import echo_err, say_table, warn
from cse_core.suites import SuiteScore
from cse_evaluation.cli.differences import RECALL, cell
from cse_evaluation.ranking import MEASURES
from cse_evaluation.retrieval import CUTS

if TYPE_CHECKING:
    from rich.table import Table

    from cse_evaluation.cli.scoring import Evaluation

Results = Sequence[Sequence[SuiteScore]]
"""The results of each model, on the same sets."""
Apart = Sequence[Mapping[str, Difference]]
Rows = Mapping[str, Mapping[str, str]]
"""By the score that a row shows, the name of the number in each column; that of a model has none.
``binary/roc_auc`` stands below ``binary``. Without any rows each score has one."""
PAIRS = {"Spearman": {"": "spearman", "TF-IDF": "tfidf", "Jaccard": "jaccard"}} | {
    label: {"": f"binary/{name}", "TF-IDF": f"binary/tfidf/{name}",
            "Jaccard": f"binary/jaccard/{name}"}
    for label, name in (("average precision", "average_precision"), ("ROC AUC", "roc_auc"))
}  # fmt: skip
GEOMETRY = {
    name.replace("_", " "): {"": f"{name}/value"}
    for name in ("alignment", "uniformity", "mean_cosine", "effective_rank")
}
TASKS = {
    "accuracy": {"": "accuracy", "TF-IDF": "tfidf", "majority": "majority"},
    "F1": {"": "f1", "TF-IDF": "tfidf_f1"},
}
DOCUMENTS = {name: {"": name, "TF-IDF": f"tfidf/{name}"} for name in (f"recall@{k}" for k in CUTS)}
QUERIES = {name: {"": name, "BM25": f"bm25/{name}"} for name in MEASURES} | {
    "ndcg@10 with BM25": {"": "with_bm25/ndcg@10"}
}
_HEADS = ("split", "setting")
_COMPARED = ("Spearman", "accuracy", RECALL, MEASURES[0])
"""Scores whose differences are tested."""
_RECALL = "Recall@k x100: a document's own title among the k most similar of all titles."
_JUDGED = (
    "x100, means over queries of trec_eval's measures; documents are title and text; BM25: words, "
    "not stemmed; with BM25: both, as `cse search --bm25 0.3` does."
)
_GEOMETRY = (
    "Alignment: mean squared distance of pairs scored above the threshold; uniformity: "
    "log mean exp(-2 d^2) over all pairs of the distinct sentences; unit vectors."
)


def show(found: Evaluation) -> None:
    """Print the scores of all models."""
    models = [entry.model for entry in found.models]
    for entry in found.models:
        echo_err(f"{entry.model}: {entry.encoder}")
    apart = found.differences
    if (pairs := [entry.pairs for entry in found.models])[0]:
        say_table(table(models, pairs, PAIRS, ("pairs",), pair_lines(pairs), apart=apart))
        say_table(table(models, pairs, GEOMETRY, (), [_GEOMETRY], places=3))
    if (tasks := [entry.tasks for entry in found.models])[0]:
        lines = task_lines(models, tasks)
        say_table(table(models, tasks, TASKS, ("train", "test"), lines, apart=apart))
    if (documents := [entry.documents for entry in found.models])[0]:
        sizes = ("documents", "titles")
        say_table(table(models, documents, DOCUMENTS, sizes, [_RECALL], apart=apart))
    if (judged := [entry.collections for entry in found.models])[0]:
        sizes = ("queries", "documents")
        say_table(table(models, judged, QUERIES, sizes, [_JUDGED], apart=apart))
    for place, suite in enumerate(found.sources.others):
        scores = [entry.others[place] for entry in found.models]
        caption = f"{suite.spec.name}: {suite.spec.summary}"
        say_table(table(models, scores, {}, (), [caption]))
    for entry in found.models:
        for result in entry.all:
            for key, value in result.facts.get("metrics", {}).items():
                count = result.facts["pairs"]
                echo_err(f"{entry.model}, {result.name}: {key} {value:.4f} over {count} pairs")
    for result in found.models[0].documents:
        if untitled := result.facts["untitled"]:
            echo_err(f"{result.name}: {untitled} documents without a title are left out")
    if synthetic := found.sources.synthetic:
        warn(
            f"{', '.join(sorted(synthetic))}: synthetic sentences, made by a grammar for "
            "trying things; no benchmark"
        )


def table(
    models: Sequence[str],
    results: Results,
    rows: Rows,
    sizes: Sequence[str],
    lines: Sequence[str],
    places: int = 2,
    apart: Apart = (),
) -> Table:
    """Return a table with a row for each score of a set and a column for each model.

    A split or setting that all sets share, the name of the only score, and ``lines`` stand below
    it. What does not fit is folded, and no digit is lost. ``sizes`` names the facts that say how
    large a set is; ``places`` are those of each number behind the point. ``apart`` has the
    differences of each model but the first: of two they stand in a column, of more below the table.
    """
    from rich.table import Table

    first = results[0]
    lines = [*lines, *_apart_lines(models, first, apart)]
    shown = [[_numbers(rows, result) for result in group] for group in zip(*results, strict=True)]
    scores = list(dict.fromkeys(name for group in shown for name in group[0]))
    columns = dict.fromkeys(name for group in shown for part in group[0].values() for name in part)
    baselines = [name for name in columns if name]
    shared = {head: {getattr(result, head) for result in first} for head in _HEADS}
    heads = [head for head in _HEADS if len(shared[head]) > 1]
    same = {head: shared[head].pop() for head in _HEADS if head not in heads}
    said = [f"{head} {name}" for head, name in same.items() if name]
    said += [f"score {scores[0]}"] if len(scores) == 1 else []
    caption = "\n".join([f"All sets: {', '.join(said)}.", *lines])
    made = Table(caption=caption, caption_justify="left")
    for name in ("set", *heads):
        made.add_column(name, no_wrap=name == "set", overflow="fold")
    for name in sizes:
        made.add_column(name, justify="right")
    if len(scores) > 1:
        made.add_column("score")
    for name in (*models, *(["difference"] if len(models) == 2 else []), *baselines):
        made.add_column(name, justify="right", overflow="fold")
    for result, numbers in zip(first, shown, strict=True):
        mean = "sets" in result.facts or "tasks" in result.facts
        if mean:
            made.add_section()
        cells = [result.name, *(getattr(result, head) for head in heads)]
        cells += [f"{result.facts[size]:,}" for size in sizes]
        for score in numbers[0]:
            values: list[Any] = [part[score][""] for part in numbers]
            row = [_cell(value, places) for value in values]
            if len(values) == 2:
                row.append("" if None in values else f"{values[1] - values[0]:+.{places}f}")
                if apart and score in _COMPARED and result.name in apart[0]:
                    row[-1] += f" {cell(apart[0][result.name])}"
            row += [_cell(numbers[0][score].get(name, ""), places) for name in baselines]
            made.add_row(*cells, *([score] if len(scores) > 1 else []), *row,
                         style="bold" if mean else None)  # fmt: skip
            cells = [""] * len(cells)
    return made


def _apart_lines(models: Sequence[str], first: Sequence[SuiteScore], apart: Apart) -> list[str]:
    """Say how differences are tested, and list those of more than two models."""
    names = [result.name for result in first]
    count = sum(name in found for found in apart for name in names)
    if not count:
        return []
    family = sum(map(len, apart))
    draws = max(one.draws for found in apart for one in found.values())
    lines = [
        f"Differences: 95% intervals and p of {draws:,} paired draws of the items, corrected by "
        f"Holm's method for the {family} comparisons of this call."
    ]
    if len(apart) > 1:
        lines += [
            f"{model} over {models[0]}, {name}: {found[name].value:+.2f} {cell(found[name])}"
            for model, found in zip(models[1:], apart, strict=True)
            for name in names
            if name in found
        ]
    return lines


def _cell(value: float | str | None, places: int) -> str:
    if isinstance(value, str):
        return value
    return "undefined" if value is None else f"{value:.{places}f}"


def _numbers(rows: Rows, result: SuiteScore) -> dict[str, dict[str, float | None]]:
    """Return the numbers of a result by score and column; None for an undefined one."""
    known = {**_flat(result.facts), **result.scores}
    rows = rows or {name: {"": name} for name in result.scores}
    tables = {
        score: {column: known[name] for column, name in names.items() if name in known}
        for score, names in rows.items()
    }
    return {score: numbers for score, numbers in tables.items() if "" in numbers}


def _flat(facts: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for key, value in facts.items():
        below = isinstance(value, Mapping)
        merged |= _flat(value, f"{above}{key}/") if below else {above + key: value}
    return merged


def pair_lines(results: Results) -> list[str]:
    """Build the notes below the scores of graded pairs."""
    lines = ["Spearman x100 of cosines; setting all: the pairs of all subsets of a set together."]
    if any("spearman" not in result.scores for row in results for result in row):
        lines.append("undefined: all cosines are equal, the model has collapsed.")
    if any("binary" in result.facts for result in results[0]):
        lines.append("Of labels 0 and 1, ties keep Spearman below 100.")
    return lines


def task_lines(models: Sequence[str], results: Results) -> list[str]:
    """Build the notes below the scores of labelled texts."""
    classifier = results[0][0].facts["classifier"]
    lines = [
        f"Accuracy x100 of {classifier} on frozen vectors; cross-validation: the mean of folds.",
        "Majority: always the most frequent label of the training part.",
    ]
    for name, row in zip(models, results, strict=True):
        ways = dict.fromkeys(result.facts["texts"] for result in row if "texts" in result.facts)
        lines.append(f"Texts of {name}: {'; '.join(ways)}.")
    lazy = {part.name for row in results for part in row if part.facts.get("converged") is False}
    if lazy:
        lines.append(f"The classifier did not converge: {', '.join(sorted(lazy))}.")
    return lines
