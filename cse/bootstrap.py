"""Paired bootstrap over test items, Student's t over seeds, and Holm's correction.

Points are compared on the same items and the same seeds: a draw takes items of each test set
(graded pairs, documents, judged queries, labelled texts) with replacement, the same ones for both
points, and an error of the mean over the seeds from Student's t. Seeds are not drawn with
replacement: of three there are few samples, and where all three are above the baseline, as they
are by chance in an eighth of cases, no sample would be below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

SEED = 20_261
"""Seed of the draws: one table has the same draws each time."""
LEVEL = 0.05
"""Corrected p below which a difference counts as shown."""
_POWER = 0.8
"""Share of comparisons that show a detectable difference."""
_BATCH = 500
_EQUAL = 1e-9
"""Points below which scores are the same number."""


@dataclass(frozen=True)
class Comparison:
    """How a point differs from another one, before it is known how many comparisons there are.

    Attributes:
        value: Mean difference over the seeds that both have.
        p: Two-sided, not corrected.
        error: Standard error of the difference.
        seeds: How many seeds both have.
        items: Test items that were drawn from; 0 where only seeds were.
        draws: The differences in all draws ``[draws]``, sorted; None where only seeds were drawn.
    """

    value: float
    p: float
    error: float
    seeds: int
    items: int = 0
    draws: NDArray[np.float64] | None = None

    @property
    def floor(self) -> bool:
        """Whether no draw has the other sign: ``p`` is the least that the draws can show."""
        return self.draws is not None and not self.draws[0] <= 0 <= self.draws[-1]

    def interval(self, level: float) -> tuple[float, float]:
        """Return the ends of the interval that excludes zero where p is below a level."""
        from scipy.stats import t

        if self.draws is None:
            half = float(self.error * t.ppf(1 - level / 2, self.seeds - 1)) if self.error else 0.0
            return self.value - half, self.value + half
        rank = math.ceil(level * (len(self.draws) + 1) / 2 - _EQUAL) - 1
        if rank < 1:  # too few draws to exclude anything at this level
            return min(float(self.draws[0]), 0.0), max(float(self.draws[-1]), 0.0)
        return float(self.draws[rank - 1]), float(self.draws[-rank])


@dataclass(frozen=True)
class Difference:
    """How a point differs from another one, corrected for the comparisons of its family.

    Attributes:
        value: Mean difference over the seeds that both have.
        low: Lower end of the interval that excludes zero where ``p`` is below 0.05.
        high: Its upper end.
        p: Two-sided, corrected.
        seeds: How many seeds both have.
        items: Test items that were drawn from; 0 where only seeds were.
        floor: Whether ``p`` is the least that the draws can show.
        draws: How often items were drawn; 0 where only seeds were.
        detectable: The true difference that four of five such comparisons would show.
    """

    value: float
    low: float
    high: float
    p: float
    seeds: int
    items: int
    floor: bool = False
    draws: int = 0
    detectable: float = 0.0

    @property
    def turned(self) -> Difference:
        """The difference of the other point to this one."""
        return replace(self, value=-self.value, low=-self.high, high=-self.low)

    def within(self, smallest: float) -> bool:
        """Tell whether the interval excludes a difference of a size, in both directions."""
        return -smallest < self.low and self.high < smallest


def corrected(comparisons: Sequence[Comparison], family: int) -> list[Difference]:
    """Return comparisons corrected by Holm's method for those of their family, in their order.

    Comparisons of the family that were not made count as if their p were 1. Each interval is at
    the level at which Holm's method tests its comparison, and of those that are not shown at the
    level of the first such: it excludes zero exactly where the corrected p is below ``LEVEL``.
    """
    from scipy.stats import t

    family = max(family, len(comparisons))
    p = holm([c.p for c in comparisons], family)
    ranks = np.argsort(np.argsort([c.p for c in comparisons], kind="stable"), kind="stable")
    shown = sum(each < LEVEL for each in p)
    differences = []
    for comparison, each, rank in zip(comparisons, p, ranks, strict=True):
        low, high = comparison.interval(LEVEL / (family - min(int(rank), shown)))
        above = t.ppf(_POWER, comparison.seeds - 1 if comparison.seeds > 1 else np.inf)
        differences.append(Difference(
            comparison.value, low, high, each, comparison.seeds, comparison.items,
            comparison.floor, 0 if comparison.draws is None else len(comparison.draws),
            (high - low) / 2 + float(above) * comparison.error,
        ))  # fmt: skip
    return differences


def draws_of(sets: Sequence[tuple[NDArray[np.float64], ...]], draws: int) -> NDArray[np.float64]:
    """Return a score x100, the mean over sets, in each draw of items ``[draws]``.

    The draws are the same for every model that is scored on the same sets. Of each set there are
    the columns ``[N]`` of its items: gold scores and cosines, of which Spearman is taken, or hits,
    of which the mean is.
    """
    from scipy.stats import bootstrap

    drawn = [
        bootstrap(
            (np.arange(len(columns[0])),), _spearman(*columns) if columns[1:] else _mean(*columns),
            n_resamples=draws, batch=_BATCH, method="percentile",
            rng=np.random.default_rng((SEED, number, len(columns[0]))),
        ).bootstrap_distribution
        for number, columns in enumerate(sets)
    ]  # fmt: skip
    return np.asarray(100 * np.mean(drawn, axis=0))


def _mean(values: NDArray[np.float64]) -> Callable[..., NDArray[np.float64]]:
    """Return the mean of drawn items; the function takes numbers of items and an axis."""
    return lambda drawn, axis=-1: np.asarray(values[drawn].mean(axis=axis))


def _spearman(*sides: NDArray[np.float64]) -> Callable[..., NDArray[np.float64]]:
    """Return Spearman of drawn items, with mean ranks of ties; 0 where a side does not vary.

    Items are sorted once: ranks in a draw follow from how often it has each value.
    """
    sorted_sides = [np.unique(side, return_inverse=True) for side in sides]

    def statistic(drawn: NDArray[np.int64], axis: int = -1) -> NDArray[np.float64]:
        rows, items = drawn.reshape(-1, drawn.shape[axis]), drawn.shape[axis]
        product, scale = _counts(rows, items).astype(float), np.ones(len(rows))
        for values, place in sorted_sides:
            count = _counts(place[rows], len(values))
            rank = count.cumsum(axis=1) - (count + items) / 2  # less their mean
            scale *= (count * rank**2).sum(axis=1)
            product *= rank[:, place]
        total = product.sum(axis=1)
        found = np.divide(total, scale**0.5, out=np.zeros_like(total), where=scale > 0)
        return np.asarray(found).reshape(drawn.shape[:-1])

    return statistic


def _counts(drawn: NDArray[np.int64], many: int) -> NDArray[np.int64]:
    """Return how often each row has each of so many numbers, ``[rows, many]``."""
    shifted = drawn + many * np.arange(len(drawn))[:, None]
    return np.bincount(shifted.ravel(), minlength=many * len(drawn)).reshape(-1, many)


def compared(
    differences: Sequence[float], drawn: Sequence[NDArray[np.float64]], items: int
) -> Comparison | None:
    """Compare a point with another one, by the difference with each seed of both.

    ``drawn`` has the differences in each draw of so many ``items`` ``[draws]``, of each seed; where
    it lacks one, whose items are not known, only seeds tell.

    Returns:
        None where nothing can be drawn: no seed that both have, or only one and no items, or no
        items and seeds that all differ by the same number, which says nothing of its error.
    """
    from scipy.stats import sem, ttest_1samp

    seeds = len(differences)
    if not seeds or (seeds < 2 and not drawn):
        return None
    value = float(np.mean(differences))
    if len(drawn) < seeds:
        # Counts of a small set are often the same for all seeds: their error is unknown, not zero.
        if np.ptp(differences) < _EQUAL:
            return None
        p = float(ttest_1samp(differences, 0.0).pvalue)
        return Comparison(value, p, float(sem(differences)), seeds)
    means = np.mean(drawn, axis=0)
    if seeds > 1:
        rng = np.random.default_rng((SEED, seeds))
        means = means + sem(differences) * rng.standard_t(seeds - 1, len(means))
    tail = min(int((means <= 0).sum()), int((means >= 0).sum()))
    p = min(1.0, 2 * (tail + 1) / (len(means) + 1))
    error = np.hypot(np.std(np.mean(drawn, axis=0)), sem(differences) if seeds > 1 else 0.0)
    return Comparison(value, p, float(error), seeds, items, np.sort(means))


def holm(values: Sequence[float], family: int = 0) -> list[float]:
    """Return p-values corrected by Holm's method, in their order.

    ``family`` is how many comparisons there are with those that were not made; at least as many.
    Written here: statsmodels, which has it, takes 2.5 s to import and brings pandas and patsy.
    """
    p = np.asarray(values, dtype=float)
    order = p.argsort(kind="stable")
    larger = np.minimum(1.0, p[order] * (max(family, len(p)) - np.arange(len(p))))
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(larger) if len(p) else larger
    return list(map(float, adjusted))
