"""What ``cse eval`` found, as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from cse_cli.api import echo_err, say_table, warn
from cse_core.suites import SuiteScore

if TYPE_CHECKING:
    from rich.table import Table

    from cse_evaluation.cli.scoring import Evaluation

Results = Sequence[Sequence[SuiteScore]]
"""The results of each model, on the same sets."""
Numbers = Mapping[str, Mapping[str, float | None]]
"""By the name of a score: that of the model by an empty name, those of baselines by theirs; None
for an undefined one."""
_BASELINES = {"tfidf": "TF-IDF", "jaccard": "Jaccard", "majority": "majority",
              "bm25": "BM25"}  # fmt: skip
_BINARY = {"average precision": "average_precision", "ROC AUC": "roc_auc"}
_HEADS = ("split", "setting")
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
    models = [each.model for each in found.models]
    for each in found.models:
        echo_err(f"{each.model}: {each.encoder}")
    if (pairs := [each.pairs for each in found.models])[0]:
        say_table(table(models, pairs, pair_numbers, ("pairs",), pair_lines(pairs)))
        say_table(table(models, pairs, geometry_numbers, (), [_GEOMETRY], places=3))
    if (tasks := [each.tasks for each in found.models])[0]:
        lines = task_lines(models, tasks)
        say_table(table(models, tasks, task_numbers, ("train", "test"), lines))
    if (documents := [each.documents for each in found.models])[0]:
        say_table(table(models, documents, document_numbers, ("documents", "titles"), [_RECALL]))
    if (judged := [each.collections for each in found.models])[0]:
        say_table(table(models, judged, query_numbers, ("queries", "documents"), [_JUDGED]))
    for place, suite in enumerate(found.sources.others):
        scores = [each.others[place] for each in found.models]
        caption = f"{suite.spec.name}: {suite.spec.summary}"
        say_table(table(models, scores, other_numbers, (), [caption]))
    for each in found.models:
        for result in each.all:
            for key, value in result.facts.get("metrics", {}).items():
                count = result.facts["pairs"]
                echo_err(f"{each.model}, {result.name}: {key} {value:.4f} over {count} pairs")
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
    numbers_of: Callable[[SuiteScore], Numbers],
    sizes: Sequence[str],
    lines: Sequence[str],
    places: int = 2,
) -> Table:
    """Return a table with a row for each score of a set and a column for each model.

    A split or setting that all sets share, the name of the only score, and ``lines`` stand below
    it. What does not fit is folded, and no digit is lost. ``sizes`` names the facts that say how
    large a set is; ``places`` are those of each number behind the point.
    """
    from rich.table import Table

    first = results[0]
    shown = [[numbers_of(result) for result in own] for own in zip(*results, strict=True)]
    scores = list(dict.fromkeys(name for own in shown for name in own[0]))
    found = {name for own in shown for each in own[0].values() for name in each}
    baselines = [name for name in _BASELINES.values() if name in found]
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
            values = [each[score][""] for each in numbers]
            row = _cells(values, places)
            row += [_cell(numbers[0][score].get(name, ""), places) for name in baselines]
            made.add_row(*cells, *([score] if len(scores) > 1 else []), *row,
                         style="bold" if mean else None)  # fmt: skip
            cells = [""] * len(cells)
    return made


def _cells(values: Sequence[float | None], places: int) -> list[str]:
    """Return the numbers of all models, and of two the difference."""
    cells = [_cell(value, places) for value in values]
    if len(values) != 2:
        return cells
    before, after = values
    if before is None or after is None:
        return [*cells, ""]
    return [*cells, f"{after - before:+.{places}f}"]


def _cell(value: float | str | None, places: int) -> str:
    if isinstance(value, str):
        return value
    return "undefined" if value is None else f"{value:.{places}f}"


def _beside(result: SuiteScore, scores: Mapping[str, str]) -> dict[str, float | None]:
    """Return the named scores of a result, as far as it has them or they are undefined."""
    known = {**result.facts, **result.scores}
    return {label: known[name] for name, label in scores.items() if name in known}


def pair_numbers(result: SuiteScore) -> Numbers:
    """Return Spearman's correlation and, of pairs labelled 0 and 1, what describes them better."""
    found = {"Spearman": _beside(result, {"spearman": "", **_BASELINES})}
    binary = result.facts.get("binary", {})
    for label, name in _BINARY.items() if binary else ():
        words = {shown: binary[key][name] for key, shown in _BASELINES.items() if key in binary}
        found[label] = {"": binary[name], **words}
    return found


def geometry_numbers(result: SuiteScore) -> Numbers:
    """Return the geometry of a set's sentences; a mean has none."""
    names = ("alignment", "uniformity", "mean_cosine", "effective_rank")
    known = {name: result.facts[name]["value"] for name in names if name in result.facts}
    return {name.replace("_", " "): {"": value} for name, value in known.items()}


def task_numbers(result: SuiteScore) -> Numbers:
    """Return the accuracy and, of pairs, F1."""
    found = {"accuracy": _beside(result, {"accuracy": "", **_BASELINES})}
    if "f1" in result.scores:
        found["F1"] = _beside(result, {"f1": "", "tfidf_f1": _BASELINES["tfidf"]})
    return found


def document_numbers(result: SuiteScore) -> Numbers:
    """Return the recalls of titles."""
    return _with_words(result, "tfidf")


def query_numbers(result: SuiteScore) -> Numbers:
    """Return the measures of judged queries, and one with BM25 fused into the ranking."""
    fused = result.facts.get("with_bm25", {})
    first = next(iter(result.scores))
    beside = {f"{first} with BM25": {"": fused[first]}} if fused else {}
    return {**_with_words(result, "bm25"), **beside}


def _with_words(result: SuiteScore, baseline: str) -> Numbers:
    words = result.facts.get(baseline, {})
    label = _BASELINES[baseline]
    return {
        name: {"": value, **({label: words[name]} if words else {})}
        for name, value in result.scores.items()
    }


def other_numbers(result: SuiteScore) -> Numbers:
    """Return the scores of another distribution's suite."""
    return {name: {"": value} for name, value in result.scores.items()}


def pair_lines(results: Results) -> list[str]:
    """Return what stands below the scores of graded pairs."""
    lines = ["Spearman x100 of cosines; setting all: the pairs of all subsets of a set together."]
    if any("spearman" not in result.scores for own in results for result in own):
        lines.append("undefined: all cosines are equal, the model has collapsed.")
    if any("binary" in result.facts for result in results[0]):
        lines.append("Of labels 0 and 1, ties keep Spearman below 100.")
    return lines


def task_lines(models: Sequence[str], results: Results) -> list[str]:
    """Return what stands below the scores of labelled texts."""
    classifier = results[0][0].facts["classifier"]
    lines = [
        f"Accuracy x100 of {classifier} on frozen vectors; cross-validation: the mean of folds.",
        "Majority: always the most frequent label of the training part.",
    ]
    for name, own in zip(models, results, strict=True):
        ways = dict.fromkeys(result.facts["texts"] for result in own if "texts" in result.facts)
        lines.append(f"Texts of {name}: {'; '.join(ways)}.")
    lazy = {each.name for own in results for each in own if each.facts.get("converged") is False}
    if lazy:
        lines.append(f"The classifier did not converge: {', '.join(sorted(lazy))}.")
    return lines
