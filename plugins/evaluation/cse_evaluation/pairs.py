"""Graded sentence pairs, and reading them from files."""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cse import hub_name, hub_rows, read_table, table_name
from cse_core.errors import CseError
from cse_core.suites import NoDevSet
from cse_evaluation.published import published_columns, published_name, published_rows

SENTENCE_COLUMNS = (
    ("sentence1", "sentence2"),
    ("sentence_1", "sentence_2"),
    ("sentence_a", "sentence_b"),
    ("text1", "text2"),
    ("text_1", "text_2"),
    ("text_a", "text_b"),
    ("question1", "question2"),
)
"""Names of the two sentence columns, the preferred ones first; upper or lower case."""
SCORE_COLUMNS = (
    "score",
    "similarity_score",
    "relatedness_score",
    "gold_score",
    "similarity",
    "gold",
    "label",
)
"""Names of the score column, the preferred ones first; upper or lower case."""
ENTAILMENT_COLUMNS = ("entailment", "entailment_judgment", "entailment_label")
"""A column that only SICK has: relatedness there runs from 1 to 5."""
_PUBLISHED = ("SICK.txt",)
"""Published files that hold several sets."""
_HALF = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """Two sentences and how similar people found them.

    Attributes:
        sentence1: One sentence.
        sentence2: The other.
        score: Their grade, on the scale of their set.
        subset: The part of the set that they come from, empty where the file names none.
    """

    sentence1: str
    sentence2: str
    score: float
    subset: str = ""


@dataclass(frozen=True)
class PairSet:
    """A file of graded pairs, or those of a data set; what a metric is computed on.

    Attributes:
        name: File name without its endings, ``stsb.test``.
        path: Where it was read from, None for pairs that come with a plugin.
        pairs: At least two pairs, not all of one score.
        scale: Lowest and highest score that the grading allows: ``(0, 5)``.
        source: The data set of the hub that they are from, with its commit; else empty.
    """

    name: str
    path: Path | None
    pairs: tuple[ScoredPair, ...]
    scale: tuple[float, float]
    source: str = ""

    @property
    def file(self) -> str:
        """Return the file name for reports, or the source or name without one."""
        return self.path.name if self.path else self.source or self.name

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Return the distinct sentences in order of appearance."""
        both = (text for pair in self.pairs for text in (pair.sentence1, pair.sentence2))
        return tuple(dict.fromkeys(both))

    @cached_property
    def gold(self) -> tuple[float, ...]:
        """Return the grade of each pair."""
        return tuple(pair.score for pair in self.pairs)

    @property
    def split(self) -> str:
        """Return ``train``, ``dev`` or ``test`` where the name ends so, else an empty string."""
        last = self.name.rpartition(".")[2]
        return last if last in ("train", "dev", "test") else ""

    @cached_property
    def fingerprint(self) -> str:
        """Return 12 hexadecimal digits that differ where any text or score differs."""
        digest = hashlib.sha256()
        for pair in self.pairs:
            digest.update(repr((pair.sentence1, pair.sentence2, pair.score)).encode())
        return digest.hexdigest()[:12]


def read_pairs(path: str | os.PathLike[str], name: str = "") -> PairSet:
    """Read graded pairs from a tsv, csv, jsonl or parquet file, gzipped or not.

    Sets of STS in the files of their publishers are read too; ``name`` says which set it is where
    a file holds several.

    The columns may stand in any order and under any name of ``SENTENCE_COLUMNS`` and
    ``SCORE_COLUMNS``; ``subset`` is optional, others are ignored. The scale is 1 to 5 for SICK,
    else the smallest of 0-1, 0-5, 0-10, 0-100 and -1-1 that holds every score.

    Raises:
        NoDevSet: If a column is missing.
    """
    place = Path(path)
    if known := published_name(place) or (name if place.name in _PUBLISHED else ""):
        read = published_rows(known, place)
        placed = ((f"{path}, pair {number}", row) for number, row in enumerate(read, 1))
        return _pair_set(known, place, os.fspath(path), published_columns(known), placed)
    columns, rows = read_table(path)
    return _pair_set(table_name(path), Path(path), os.fspath(path), columns, rows)


def find_pairs(name: str) -> PairSet:
    """Read graded pairs from a file, or of a data set of the hub; there of the split ``test``."""
    on_hub = hub_name(name)
    if on_hub is None:
        return read_pairs(name)
    rows, resolved = hub_rows(on_hub, ("test",))
    return replace(pairs_from_rows(resolved.set_name, rows.to_list()), source=str(resolved))


def pairs_from_rows(name: str, rows: Sequence[Mapping[str, Any]]) -> PairSet:
    """Make a set of rows such as a ``SourceSpec`` factory's ``pairs(split)`` gives."""
    if not rows:
        raise CseError("there are no pairs", where=name)
    placed = ((f"{name}, row {n}", dict(row)) for n, row in enumerate(rows, start=1))
    return _pair_set(name, None, name, list(rows[0]), placed)


def _pair_set(
    name: str,
    path: Path | None,
    where: str,
    columns: Sequence[str],
    rows: Iterable[tuple[str, Mapping[str, Any]]],
) -> PairSet:
    names = {column.lower(): column for column in reversed(columns)}
    first, second, score = _columns(names, where)
    subset = names.get("subset")
    pairs = [
        ScoredPair(
            text_of(row, first, place),
            text_of(row, second, place),
            _score(row, score, place),
            str(row.get(subset) or "").strip() if subset else "",
        )
        for place, row in rows
    ]
    scores = {pair.score for pair in pairs}
    if len(pairs) < 2:
        raise CseError(
            f"{len(pairs)} scored pair{'' if len(pairs) == 1 else 's'}: "
            "Spearman's correlation needs at least 2",
            where=where,
        )
    if len(scores) == 1:
        raise CseError(
            f"every one of {len(pairs)} pairs has the score {scores.pop():g}: "
            "Spearman's correlation is undefined",
            where=where,
            hint="name a file with graded pairs",
        )
    sick = any(column in names for column in ENTAILMENT_COLUMNS)
    return PairSet(name, path, tuple(pairs), _scale(min(scores), max(scores), sick))


def _columns(names: Mapping[str, str], where: str) -> tuple[str, str, str]:
    sentences = next((both for both in SENTENCE_COLUMNS if all(n in names for n in both)), None)
    score = next((column for column in SCORE_COLUMNS if column in names), None)
    if sentences and score:
        return names[sentences[0]], names[sentences[1]], names[score]
    missing = [column for column in SENTENCE_COLUMNS[0] if not sentences and column not in names]
    if not score:
        missing.append(SCORE_COLUMNS[0])
    shown = ", ".join(f"{name[:40]!r}" for name in reversed(list(names.values())))
    raise NoDevSet(
        f"no column {', '.join(missing)}; the columns are {shown}",
        where=where,
        hint="it needs columns score, sentence1 and sentence2 (subset if there is one)",
    )


def text_of(row: Mapping[str, Any], column: str, place: str) -> str:
    """Return the text in a column of a row; refuse a blank one."""
    value = row.get(column)
    if value is None or (isinstance(value, str) and not value.strip()):
        raise CseError(f"no text in the column {column!r}", where=place)
    if not isinstance(value, str):
        raise CseError(f"{column!r} is not a text", where=place, value=value)
    if _HALF.search(value):
        raise CseError(f"{column!r} holds half a character", where=place)
    return value


def _score(row: Mapping[str, Any], column: str, place: str) -> float:
    value = row.get(column)
    try:
        score = float(value)  # type: ignore[arg-type]  # None and lists are the error below
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not math.isfinite(score):
        shown = "" if value is None else value
        raise CseError(f"{column!r} is not a number", where=place, value=shown)
    return score


def _scale(lowest: float, highest: float, sick: bool) -> tuple[float, float]:
    if sick and lowest >= 1 and highest <= 5:
        return (1.0, 5.0)
    for low, high in ((0.0, 1.0), (-1.0, 1.0), (0.0, 5.0), (0.0, 10.0), (0.0, 100.0)):
        if low <= lowest and highest <= high:
            return (low, high)
    return (lowest, highest)


def is_binary(gold: Iterable[float]) -> bool:
    """Tell whether scores are the labels 0 and 1, each at least once."""
    return set(gold) == {0.0, 1.0}


_FLAT = 1e-9
"""Cosines that differ by less are equal: what is left is rounding, not a ranking."""


def spearman(gold: Sequence[float], values: NDArray[np.float64]) -> float | None:
    """Return Spearman's rank correlation x100 of ``[P]`` scores, ties sharing their mean rank.

    None where it is undefined: fewer than two pairs, or all gold scores or all values equal
    (within rounding).
    """
    if len(gold) < 2 or min(gold) == max(gold) or float(np.ptp(values)) < _FLAT:
        return None
    from scipy.stats import spearmanr

    return 100.0 * float(spearmanr(np.asarray(gold), values).statistic)
