"""Paired bootstrap over test items, Student's t over seeds, and Holm's correction.

Points are compared on the same items and the same seeds: a draw takes items of each test set
(graded pairs, documents, labelled texts) with replacement, the same ones for both points, and an
error of the mean over the seeds from Student's t. Seeds are not drawn with replacement: of three
there are few samples, and where all three are above the baseline, as they are by chance in an
eighth of cases, no sample would be below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cse_study.measures.item_files import Cosines

DRAWS = 10_000
"""How often items are drawn."""
SEED = 20_261
"""Seed of the draws: one table has the same draws each time."""
LEVEL = 0.05
"""Corrected p below which a difference counts as shown."""
_CHUNK = 500
_EQUAL = 1e-9
"""Points below which scores are the same number."""


@dataclass(frozen=True)
class Difference:
    """How a point differs from the baseline.

    Attributes:
        value: Mean difference over the seeds that both have.
        low: Lower end of the interval that holds 95% of the draws.
        high: Its upper end.
        p: Two-sided, from the draws, not corrected.
        seeds: How many seeds both have.
        items: Test items that were drawn from; 0 where only seeds were.
    """

    value: float
    low: float
    high: float
    p: float
    seeds: int
    items: int


def hits_of(items: Mapping[str, NDArray[np.int64]], number: str) -> NDArray[np.bool_] | None:
    """Return the items ``[N]`` whose share ``accuracy`` or ``recall@k`` is, None of others."""
    name, _, cut = number.partition("@")
    if name == "recall" and cut.isdigit() and "rank" in items:
        return np.asarray(items["rank"] <= int(cut))
    return items["right"].astype(bool) if name == "accuracy" and "right" in items else None


def draws_of_hits(hits: Sequence[NDArray[np.bool_]], draws: int = DRAWS) -> NDArray[np.float64]:
    """Return the share x100 of hits, the mean over sets, in each draw of items ``[draws]``.

    Args:
        hits: Of each set, its items ``[N]``.
        draws: How many.
    """
    found = []
    for number, own in enumerate(hits):
        shares = [times @ own for times in _times(len(own), draws, number)]
        found.append(100 * np.concatenate(shares) / len(own))
    return np.asarray(np.mean(found, axis=0))


def draws_of(cosines: Cosines, sets: Sequence[str], draws: int = DRAWS) -> NDArray[np.float64]:
    """Return Spearman x100, the mean over sets, of each draw of pairs ``[draws]``.

    The draws are the same for every model that is scored on the same sets.
    """
    drawn = [_of_set(*cosines[name], draws, number) for number, name in enumerate(sets)]
    return np.asarray(np.mean(drawn, axis=0))


def _of_set(
    gold: NDArray[np.float64], cosine: NDArray[np.float64], draws: int, number: int
) -> NDArray[np.float64]:
    """Return Spearman x100 of drawn pairs ``[draws]``; exact, with mean ranks of ties."""
    left, right = _Ranks(gold), _Ranks(cosine)
    drawn = _times(len(gold), draws, number)
    return 100 * np.concatenate(
        [_pearson(left.drawn(times), right.drawn(times), times) for times in drawn]
    )


def _times(count: int, draws: int, number: int) -> Iterator[NDArray[np.float64]]:
    """Yield how often each item of a set is drawn ``[B, count]``, some draws at a time."""
    rng = np.random.default_rng((SEED, number, count))
    for start in range(0, draws, _CHUNK):
        size = min(_CHUNK, draws - start)
        yield rng.multinomial(count, np.full(count, 1 / count), size).astype(np.float64)


class _Ranks:
    """Ranks of values that stand there several times each."""

    def __init__(self, values: NDArray[np.float64]) -> None:
        self._order = np.argsort(values, kind="stable")
        ordered = values[self._order]
        first = np.r_[True, ordered[1:] != ordered[:-1]]
        self._starts = np.flatnonzero(first)
        self._group = np.cumsum(first) - 1
        self._back = np.argsort(self._order, kind="stable")

    def drawn(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean rank ``[B, P]`` of each value, drawn so many times."""
        of_group = np.add.reduceat(times[:, self._order], self._starts, axis=1)
        ranks = np.cumsum(of_group, axis=1) - (of_group - 1) / 2
        return np.asarray(ranks[:, self._group][:, self._back])


def _pearson(
    left: NDArray[np.float64], right: NDArray[np.float64], times: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the weighted correlation of each row ``[B]``; 0 where a side does not vary."""
    total = times.sum(axis=1, keepdims=True)
    left = left - (left * times).sum(axis=1, keepdims=True) / total
    right = right - (right * times).sum(axis=1, keepdims=True) / total
    product = (left * right * times).sum(axis=1)
    scale = np.sqrt((left**2 * times).sum(axis=1) * (right**2 * times).sum(axis=1))
    return np.asarray(np.divide(product, scale, out=np.zeros_like(product), where=scale > 0))


def compared(
    of_point: Mapping[int, float],
    of_baseline: Mapping[int, float],
    drawn_point: Mapping[int, NDArray[np.float64]],
    drawn_baseline: Mapping[int, NDArray[np.float64]],
    items: int,
) -> Difference | None:
    """Return how a point differs from the baseline.

    Args:
        of_point: Its score by seed.
        of_baseline: The baseline's.
        drawn_point: Its score in each draw of items ``[draws]`` by seed; empty where its items are
            not known, and seeds alone tell.
        drawn_baseline: The baseline's.
        items: How many items were drawn from.

    Returns:
        None where nothing can be drawn: no seed that both have, or one alone and no items, or no
        items and seeds that all differ by the same number, which says nothing of its error.
    """
    seeds = sorted(of_point.keys() & of_baseline.keys())
    drawn = [s for s in seeds if s in drawn_point and s in drawn_baseline]
    if not seeds or (len(seeds) < 2 and not drawn):
        return None
    value = float(np.mean([of_point[s] - of_baseline[s] for s in seeds]))
    if drawn != seeds:
        return _of_seeds([of_point[seed] - of_baseline[seed] for seed in seeds])
    means = np.mean([drawn_point[s] - drawn_baseline[s] for s in seeds], axis=0)
    if len(seeds) > 1:
        error = _error_of_mean([of_point[s] - of_baseline[s] for s in seeds])
        drawn_errors = np.random.default_rng((SEED, len(seeds)))
        means = means + error * drawn_errors.standard_t(len(seeds) - 1, len(means))
    low, high = np.percentile(means, [2.5, 97.5])
    tail = min(int((means <= 0).sum()), int((means >= 0).sum()))
    p = min(1.0, 2 * (tail + 1) / (len(means) + 1))
    return Difference(value, float(low), float(high), p, len(seeds), items)


def _of_seeds(differences: Sequence[float]) -> Difference | None:
    """Return the difference of scores of which no items are known: Student's t over the seeds.

    Counts of a small set are often the same for all seeds: their error is unknown, not zero.
    """
    from scipy.stats import t

    count, value = len(differences), float(np.mean(differences))
    error = _error_of_mean(differences)
    if error < _EQUAL:
        return Difference(0.0, 0.0, 0.0, 1.0, count, 0) if abs(value) < _EQUAL else None
    half = float(t.ppf(0.975, count - 1)) * error
    p = float(2 * t.sf(abs(value) / error, count - 1))
    return Difference(value, value - half, value + half, p, count, 0)


def _error_of_mean(differences: Sequence[float]) -> float:
    return float(np.std(differences, ddof=1) / np.sqrt(len(differences)))


def holm(values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number by Holm's method, in their order."""
    order = sorted(range(len(values)), key=lambda place: values[place])
    found = [0.0] * len(values)
    largest = 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(values) - rank) * values[place]))
        found[place] = largest
    return found
