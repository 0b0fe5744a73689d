"""How the scores of a model differ from those of the first, over the same test items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cse import Comparison, Difference, compared, corrected, draws_of
from cse_core.suites import SuiteScore
from cse_evaluation.ranking import MEASURES

if TYPE_CHECKING:
    from cse_evaluation.cli.sources import Sources
    from cse_evaluation.results import Scores

DRAWS, MORE = 2_000, 100
"""How often the items of a set are drawn: at least, and for each comparison of the call. The least
p of fewer draws, corrected for all comparisons, would never show a difference."""
RECALL = "recall@5"
Columns = tuple[NDArray[np.float64], ...]


def differences(sources: Sources, scored: Sequence[Scores]) -> list[dict[str, Difference]]:
    """Return of each model but the first the differences from it, by set, in points.

    A set has one: Spearman of graded pairs, the accuracy of labelled texts, recall@5 of titles,
    nDCG@10 of judged queries; a mean over sets has one too. Items are drawn with replacement, the
    same ones for both models, and p and intervals are corrected by Holm's method for all
    comparisons of the call. Sets of other suites, whose items are not known, have none.
    """
    if len(scored) < 2:
        return []
    draws = max(DRAWS, MORE * (len(scored) - 1) * len(scored[0].all))
    drawn = [_draws(sources, one, draws) for one in scored]
    known: list[tuple[int, str, Comparison]] = []
    for place, other in enumerate(drawn[1:], 1):
        for name, (score, values, items) in other.items():
            first = drawn[0].get(name)
            if first is not None and score is not None and first[0] is not None:
                found = compared([score - first[0]], [values - first[1]], items)
                known += [(place, name, found)] if found is not None else []
    corrections = corrected([found for *_, found in known], len(known))
    made: list[dict[str, Difference]] = [{} for _ in scored[1:]]
    for (place, name, _), difference in zip(known, corrections, strict=True):
        made[place - 1][name] = difference
    return made


Drawn = tuple[float | None, NDArray[np.float64], int]


def _draws(sources: Sources, scored: Scores, draws: int) -> dict[str, Drawn]:
    """Return the score of each set, in all draws of its items ``[draws]``, and their number.

    A set of one item has no draws.
    """
    gold = {part.name: np.asarray(part.gold, np.float64) for part in sources.pairs}
    drawn: dict[str, Drawn] = {}

    def add(results: Sequence[SuiteScore], number: str, columns: Callable[[Any], Columns]) -> None:
        for result in results:
            score, items = result.scores.get(number), getattr(result, "items", None)
            sets = result.facts.get("sets", result.facts.get("tasks"))
            if sets is not None and all(name in drawn for name in sets):
                parts = [drawn[name] for name in sets]
                values = np.mean([values for _, values, _ in parts], axis=0)
                drawn[result.name] = (score, values, sum(items for *_, items in parts))
            elif items is not None and len(items) > 1:
                given = columns(result)
                values = draws_of([given], draws)
                drawn[result.name] = (score, values, len(given[0]))

    add(scored.pairs, "spearman", lambda r: (gold[r.name], np.asarray(r.items, np.float64)))
    add(scored.tasks, "accuracy", lambda r: (np.asarray(r.items, np.float64),))
    add(scored.documents, RECALL, lambda r: (np.asarray(r.items < 5, np.float64),))
    add(scored.collections, MEASURES[0], lambda r: (np.asarray(r.items[:, 0], np.float64),))
    return drawn


def to_json(difference: Difference) -> dict[str, Any]:
    """Describe a difference as ``--json`` shows it."""
    numbers = {name: round(getattr(difference, name), 4) for name in ("value", "low", "high", "p")}
    return {**numbers, "items": difference.items, "draws": difference.draws}


def cell(difference: Difference) -> str:
    """Describe a difference in a table: its interval and p, which is at most its floor."""
    sign = "<=" if difference.floor else "="
    return f"[{difference.low:+.2f}, {difference.high:+.2f}] p {sign} {difference.p:.2g}"
