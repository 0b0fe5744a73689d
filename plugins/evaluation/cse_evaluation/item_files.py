"""Writing what scores are made of: cosines of pairs, places of titles, labels that were right."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cse_cli.machine.out_files import out_file
from cse_evaluation.pairs import PairSet

if TYPE_CHECKING:
    from cse_evaluation.retrieval import RetrievalResult
    from cse_evaluation.task_result import TaskResult

COLUMNS = ("set", "gold", "cosine", "subset", "sentence1", "sentence2")
ITEM_COLUMNS = ("set", "item", "rank", "right")
_BREAKS = re.compile(r"[\t\r\n]+")


def write_pairs_out(
    path: str | os.PathLike[str],
    sets: Sequence[PairSet],
    cosines: Sequence[NDArray[np.float64]],
) -> None:
    """Write a tsv file: the set's name, gold score, cosine, subset and both sentences.

    It is written beside and renamed, so that it is whole or not there. Tabs and line breaks
    inside sentences become spaces. ``read_pairs`` reads it again.

    Args:
        path: The file; replaced if it is there.
        sets: The sets.
        cosines: Cosine of each pair ``[P]``, one array for each set.

    Raises:
        CseError: If it cannot be written.
        ValueError: If there is not one cosine for each pair.
    """
    if [len(pairs.pairs) for pairs in sets] != [len(values) for values in cosines]:
        raise ValueError("there must be one cosine for each pair of each set")
    with (
        out_file(Path(path), "--pairs-out") as made,
        made.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.write("\t".join(COLUMNS) + "\n")
        for pairs, values in zip(sets, cosines, strict=True):
            for pair, cosine in zip(pairs.pairs, values, strict=True):
                fields = (pairs.name, repr(pair.score), f"{cosine:.6f}", pair.subset)
                line = (*fields, pair.sentence1, pair.sentence2)
                file.write("\t".join(_BREAKS.sub(" ", field) for field in line) + "\n")


def write_items_out(
    path: str | os.PathLike[str],
    classified: Iterable[TaskResult],
    retrieved: Iterable[RetrievalResult],
) -> None:
    """Write a tsv file with a line for each document and each labelled text that was scored.

    Its columns are the set's name, the number of the item from 1, the rank of a document's own
    title from 1, and whether a text's label was predicted, 1 or 0; one of the last two is empty.

    Args:
        path: The file; replaced if it is there.
        classified: Results on labelled texts; means are left out.
        retrieved: Results on documents.

    Raises:
        CseError: If it cannot be written.
    """
    with (
        out_file(Path(path), "--items-out") as made,
        made.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.write("\t".join(ITEM_COLUMNS) + "\n")
        for task in classified:
            for number, right in enumerate(task.right if task.right is not None else (), start=1):
                file.write(f"{task.name}\t{number}\t\t{int(right)}\n")
        for found in retrieved:
            for number, before in enumerate(found.before if found.before is not None else (), 1):
                file.write(f"{found.name}\t{number}\t{int(before) + 1}\t\n")
