"""The numbers of a finished run by name, and which of them a table shows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from cse_core.training.run_folder import RESULT
from cse_study.execution.folder import StudyFolder, read_json

_SUITES = {"sts": "spearman", "chinese": "spearman", "transfer": "accuracy",
           "classify": "accuracy", "retrieval": "recall@5"}  # fmt: skip
"""Suites whose mean ``SUITE.mean`` is, and the number that it is the mean of."""
_MEAN = re.compile(r"mean\((.+)\)")
MAIN = ("spearman", "accuracy", "recall@5", "recall@1", "mean_average_precision")
"""Numbers that stand for a set, in this order, where the set alone is named."""
DEV = "dev"
"""Stands for the dev score that chose the checkpoint."""


@dataclass(frozen=True)
class Shown:
    """A score as a table shows it.

    Attributes:
        name: Its full name.
        value: The number.
        sets: Test sets that it is the mean over; empty of scores that are no such mean.
    """

    name: str
    value: float
    sets: tuple[str, ...] = ()

    @property
    def number(self) -> str:
        """Return what it is of each set, ``spearman`` or ``recall@5``."""
        return self.name.removesuffix(")").rpartition(".")[2]


def scores_of(folder: StudyFolder, key: str, scoring: str | None) -> dict[str, float]:
    """Return every number of a run: its dev scores, and what ``cse eval`` said of it."""
    result = read_json(folder.run(key) / RESULT)
    found = {name: float(value) for name, value in result.get("scores", {}).items()
             if isinstance(value, int | float)}  # fmt: skip
    if isinstance(chosen := result.get("score"), int | float):
        found.setdefault(str(result.get("chosen_by")), float(chosen))  # a mean over dev sets
    if scoring is not None:
        said = read_json(folder.scores(key, f"{scoring}.json"))
        found |= flat_scores(said.get("results", {}))
    return found


def flat_scores(results: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of ``cse eval --json`` by ``SET.NUMBER``."""
    found: dict[str, float] = {}
    for name, content in results.items():
        for number, value in content.items() if isinstance(content, Mapping) else ():
            if isinstance(value, Mapping):
                value = value.get("value")
            if isinstance(value, float):
                found[f"{name}.{number}"] = value
    return found


def means_of(results: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the sets that each mean of ``cse eval --json`` is the mean of."""
    return {
        name: tuple(content[key])
        for name, content in results.items()
        for key in ("sets", "tasks")
        if isinstance(content, Mapping) and isinstance(content.get(key), list)
    }


def find_shown(
    wanted: str,
    scores: Mapping[str, float],
    results: Mapping[str, Any],
    chosen_by: str | None = None,
) -> Shown | None:
    """Return the score that a study shows, None where the run has none like it.

    Args:
        wanted: A full name, a set, a pattern, ``SUITE.mean``, ``dev`` or ``dev.NUMBER``, or
            ``mean(A, B)`` of such.
        scores: Every number of the run.
        results: What ``cse eval --json`` said.
        chosen_by: The dev score that chose its checkpoint.
    """
    wanted = wanted.strip()
    if found := _MEAN.fullmatch(wanted):
        parts = [find_shown(each, scores, results, chosen_by) for each in found[1].split(",")]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        sets = tuple(name for part in known for name in part.sets)
        whole = all(len(part.sets) == 1 for part in known)
        whole = whole and len({part.number for part in known}) == 1
        value = sum(part.value for part in known) / len(known)
        name = f"mean({', '.join(part.name for part in known)})"
        return Shown(name, value, sets if whole else ())
    if wanted == DEV and chosen_by in scores:
        return Shown(str(chosen_by), scores[str(chosen_by)])
    suite, _, rest = wanted.partition(".")
    if suite == DEV and rest:
        wanted = f"*.{wanted}"
    patterns = [wanted, *(f"{wanted}.{number}" for number in MAIN)]
    if rest == "mean" and suite in _SUITES:
        # Means of graded pairs have no suite in their names; one set alone has no mean.
        heads = ("mean", "mean-of-*", "*.test")
        if _SUITES[suite] != "spearman":
            heads = (wanted, f"{wanted}-of-*", "*")
        patterns = [f"{head}.{_SUITES[suite]}" for head in heads]
    for pattern in patterns:
        names = [pattern] if pattern in scores else _matching(pattern, scores)
        if names:
            return Shown(names[0], scores[names[0]], _sets(names[0], results))
    return None


def first_score(
    scores: Mapping[str, float], results: Mapping[str, Any], wanted: str = ""
) -> Shown | None:
    """Return what is shown where a study's own score was not measured.

    It is that of the first test set: its number of the name that was wanted, the uniformity in the
    place of ``stsb.dev.uniformity``, else its main one.
    """
    own = wanted.rpartition(".")[2]
    for name, content in results.items():
        for number in (own, *MAIN):
            if f"{name}.{number}" in scores and isinstance(content, Mapping):
                full = f"{name}.{number}"
                return Shown(full, scores[full], _sets(full, results))
    return None


def _matching(pattern: str, scores: Mapping[str, float]) -> list[str]:
    return [name for name in scores if fnmatchcase(name, pattern)]


def _sets(name: str, results: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the sets behind a score, nothing where it is not a mean over their items."""
    head, _, number = name.rpartition(".")
    if head not in results or not (
        number in ("spearman", "accuracy") or number.startswith("recall@")
    ):
        return ()
    return means_of(results).get(head, (head,))


def columns_of(wanted: Sequence[str]) -> list[str]:
    """Return the scores that a table shows, one at least."""
    return [each for each in wanted if each.strip()] or ["*.test"]
