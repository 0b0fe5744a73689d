"""Alternating repeats, medians, ranges and ratios."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

Found = TypeVar("Found")


def alternate(
    works: Mapping[str, Callable[[], Found]], repeats: int, warm: int = 1
) -> dict[str, list[Found]]:
    """Do several works in turn, and return what each found in each repeat.

    Every second repeat goes the other way round, so that a machine that gets slower or faster does
    so for all of them.

    Args:
        works: What to do, by name.
        repeats: How often each counts.
        warm: Repeats before these, which count for nothing.
    """
    found: dict[str, list[Found]] = {name: [] for name in works}
    for turn in range(warm + repeats):
        names = list(works)
        for name in names if turn % 2 == 0 else reversed(names):
            value = works[name]()
            if turn >= warm:
                found[name].append(value)
    return found


def ratios(ones: Sequence[float], others: Sequence[float]) -> list[float]:
    """Return one over the other for each repeat: what was measured side by side."""
    return [one / other for one, other in zip(ones, others, strict=True)]


def spread(values: Sequence[float], form: str = ".2f") -> str:
    """Return the median and the range in words: ``1.95 [1.68-2.05]``."""
    middle = format(statistics.median(values), form)
    if len(values) == 1:
        return middle
    return f"{middle} [{min(values):{form}}-{max(values):{form}}]"
