"""What the cosines of graded pairs say beyond their rank correlation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cse_study.measures.item_files import read_cosines


def by_gold(point: Mapping[str, Any]) -> dict[str, float]:
    """Return mean and variance of the cosine in groups of the gold score, of a finished run.

    Groups are equal parts of the range from the lowest to the highest gold score; one without
    pairs has no numbers.

    Args:
        point: ``pairs``, the file with ``gold`` and ``cosine`` of each scored pair; ``groups``,
            how many; where the run has no scored pairs, there are no numbers.
    """
    sets = read_cosines(Path(point["pairs"])) if point.get("pairs") else {}
    if not sets:
        return {}
    golds, cosines = (np.concatenate(each) for each in zip(*sets.values(), strict=True))
    found = {"range of cosines": float(np.ptp(cosines))}
    for group, (_, held) in grouped(golds, cosines, int(point.get("groups", 5))).items():
        found[f"group {group}: mean"] = float(held.mean())
        found[f"group {group}: variance"] = float(held.var())
    return found


def grouped(
    golds: NDArray[np.float64], cosines: NDArray[np.float64], count: int
) -> dict[int, tuple[tuple[float, float], NDArray[np.float64]]]:
    """Return the range of gold scores and the cosines of each group of one width, from 1."""
    ends = np.linspace(golds.min(), golds.max(), count + 1)
    width = (ends[-1] - ends[0]) or 1
    places = np.minimum((count * (golds - ends[0]) / width).astype(int), count - 1)
    return {
        int(place) + 1: ((float(ends[place]), float(ends[place + 1])), cosines[places == place])
        for place in np.unique(places)
    }
