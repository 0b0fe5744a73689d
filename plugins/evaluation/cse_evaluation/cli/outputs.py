"""What ``cse eval`` writes: what scores are made of, and the evaluations that a run keeps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cse_cli.api import keep_scores, out_file
from cse_core import __version__
from cse_evaluation.collections import Collection
from cse_evaluation.pairs import PairSet
from cse_evaluation.ranking import MEASURES
from cse_evaluation.results import Result

COLUMNS = ("set", "gold", "cosine", "subset", "sentence1", "sentence2")
ITEM_COLUMNS = ("set", "item", "rank", "right")
"""What ``--items-out`` has of each item; measures of judged queries stand behind them."""
_BREAKS = re.compile(r"[\t\r\n]+")


def write_pairs_out(path: Path, sets: Sequence[PairSet], results: Sequence[Result]) -> None:
    """Write a tsv file: the set's name, gold score, cosine, subset and both sentences.

    Tabs and line breaks inside sentences become spaces. ``read_pairs`` reads it again. Means that
    follow the results of the sets are left out.
    """
    rows = (
        (pairs.name, repr(pair.score), f"{cosine:.6f}", pair.subset, pair.sentence1, pair.sentence2)
        for pairs, result in zip(sets, results, strict=False)
        for pair, cosine in zip(pairs.pairs, _items(result), strict=True)
    )
    _write(path, "--pairs-out", COLUMNS, rows)


def write_items_out(
    path: Path,
    tasks: Sequence[Result],
    documents: Sequence[Result],
    judged: Sequence[tuple[Collection, Result]] = (),
) -> None:
    """Write a tsv file with a line for each labelled text, each document and each judged query.

    Its columns are the set's name, the number of the item from 1 or the id of the query, the rank
    of a document's own title from 1, and whether a text's label was predicted, 1 or 0; where
    queries are among them, their measures from 0 to 1. What an item does not have is empty.
    """
    rows: list[dict[str, str]] = []
    for task in tasks:
        rows += [{"set": task.name, "item": str(number), "right": str(int(item))}
                 for number, item in enumerate(_items(task), start=1)]  # fmt: skip
    for result in documents:
        rows += [{"set": result.name, "item": str(number), "rank": str(int(before) + 1)}
                 for number, before in enumerate(_items(result), start=1)]  # fmt: skip
    for collection, result in judged:
        for query, values in zip(collection.queries, _items(result), strict=True):
            measures = {name: repr(float(x)) for name, x in zip(MEASURES, values, strict=True)}
            rows.append({"set": collection.name, "item": query, **measures})
    columns = (*ITEM_COLUMNS, *(MEASURES if judged else ()))
    _write(path, "--items-out", columns, ([row.get(name, "") for name in columns] for row in rows))


def _items(result: Result) -> Iterable[Any]:
    return () if result.items is None else result.items


def _write(path: Path, flag: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a tsv file beside its name and rename it, so that it is whole or not there."""
    with out_file(path, flag) as made, made.open("w", encoding="utf-8", newline="\n") as file:
        for row in (columns, *rows):
            file.write("\t".join(_BREAKS.sub(" ", value) for value in row) + "\n")


def keep(models: Sequence[str], options: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Add each model's scores to ``evaluations.jsonl`` of its run; others than runs keep none.

    ``options`` are those that are not the defaults; ``found`` is what ``cse eval --json`` prints.
    """
    for name, scores in zip(models, found.get("models", [found]), strict=True):
        line = {
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "version": __version__,
            "options": dict(options),
            "encoder": scores["encoder"],
            "results": scores["results"],
        }
        keep_scores(Path(name).expanduser(), line)
