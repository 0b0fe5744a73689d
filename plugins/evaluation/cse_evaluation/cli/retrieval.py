"""The retrieval suite of ``cse eval``: finding documents, scoring models on them, showing it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse_cli.terminal.console import echo_err, say_table
from cse_core.errors import CseError, did_you_mean

if TYPE_CHECKING:
    from cse_core.evaluation.suites import Encode, Progress
    from cse_evaluation.documents import DocumentSet
    from cse_evaluation.retrieval import Recall, RetrievalResult

Words = dict[str, "tuple[Recall, str]"]
SIMILARITIES = ("cosine", "dot")
"""What may rank candidates."""


def find_document_sets(
    suites: Sequence[str],
    data_dir: Path | None,
    files: Sequence[str],
    candidates: Sequence[str] = (),
    similarity: str = "cosine",
) -> list[DocumentSet]:
    """Read the documents that were asked for.

    Args:
        suites: Names of suites; ``retrieval`` is looked at here.
        data_dir: Where the suite's files are; without it, files that are named are the suite.
        files: Files of documents.
        candidates: Files of other candidates beside the documents' own titles.
        similarity: What ranks candidates; checked here.

    Raises:
        CseError: If there is nothing of the suite, a file is broken, two have one name, the
            similarity is unknown, or an option of retrieval is given without documents.
    """
    if similarity not in SIMILARITIES:
        hint = did_you_mean(similarity, SIMILARITIES)
        raise CseError("unknown similarity", where="--similarity", value=similarity, hint=hint)
    if not files and "retrieval" not in suites:
        unused = "--candidates" if candidates else "--similarity"
        if candidates or similarity != "cosine":
            hint = "name some with --documents FILE or --suite retrieval"
            raise CseError("there are no documents to score", where=unused, hint=hint)
        return []
    from cse_evaluation.document_suite import check_distinct, find_documents
    from cse_evaluation.documents import read_candidates, read_documents

    whole = "retrieval" in suites and not (files and data_dir is None)
    found = find_documents(data_dir) if whole else []
    found += [read_documents(file) for file in files]
    check_distinct(found)
    if candidates:
        others = list(chain.from_iterable(read_candidates(file) for file in candidates))
        found = [each.among(others) for each in found]
    return found


def score_document_words(sets: Sequence[DocumentSet]) -> Words:
    """Return the recall of words alone on each set: it is the same for every model."""
    from cse_evaluation.retrieval import score_words

    return {each.name: score_words(each) for each in sets}


def score_documents(
    encode: Encode,
    sets: Sequence[DocumentSet],
    words: Words,
    progress: Progress,
    similarity: str = "cosine",
    index: str = "auto",
) -> list[RetrievalResult]:
    """Score a model on all sets.

    Raises:
        CseError: If the index is unknown or not installed.
    """
    from cse_evaluation.retrieval import evaluate_retrieval

    return [
        evaluate_retrieval(encode, each, words.get(each.name), progress, similarity, index)
        for each in sets
    ]


def retrieval_json(results: Sequence[RetrievalResult]) -> dict[str, Any]:
    """Return ``{"bbc_news.all": {"recall@5": …, "documents": …}, …}``."""
    return {result.name: result.to_json() for result in results}


def show_retrieval(models: Sequence[str], results: Sequence[Sequence[RetrievalResult]]) -> None:
    """Print the table of all models, TF-IDF below them."""
    from rich.table import Table

    from cse_evaluation.retrieval import CUTS, SIMILARITIES

    first = results[0]
    others = sorted({result.candidates for result in first} - {0})
    lines = [
        "Recall@k x100: a document's own title among the k most similar of all titles; a document "
        f"is the mean of its sentences' vectors; {SIMILARITIES[first[0].similarity]}."
    ]
    if others:
        counts = " or ".join(f"{count:,}" for count in others)
        lines.append(f"Of the titles {counts} are candidates of --candidates alone.")
    units = sorted({result.units for result in first if result.words})
    if units:
        lines.append(f"TF-IDF: {' or '.join(units)}, lower-cased; idf from the documents.")
    table = Table(caption="\n".join(lines), caption_justify="left")
    table.add_column("set", no_wrap=True)
    for column in ("documents", "titles"):
        table.add_column(column, justify="right")
    table.add_column("model")
    for cut in CUTS:
        table.add_column(f"recall@{cut}", justify="right")
    for place, result in enumerate(first):
        rows = [(name, own[place].recall) for name, own in zip(models, results, strict=True)]
        rows += [("TF-IDF", result.words)] if result.words else []
        cells = [result.name, f"{result.documents:,}", f"{result.titles:,}"]
        for name, recall in rows:
            table.add_row(*cells, name, *(f"{recall[cut]:.2f}" for cut in CUTS))
            cells = ["", "", ""]
    say_table(table)
    for name, own in zip(models, results, strict=True):
        for result in own:
            if result.index is not None:
                echo_err(f"{name}, {result.name}: {result.index}")
    for result in first:
        if result.untitled:
            echo_err(f"{result.name}: {result.untitled} documents without a title are left out")
