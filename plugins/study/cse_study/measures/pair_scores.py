"""What the cosines of graded pairs say beyond their rank correlation."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, pvariance
from typing import Any


def by_gold(point: Mapping[str, Any]) -> dict[str, float]:
    """Return mean and variance of the cosine in groups of the gold score, of a finished run.

    Groups are equal parts of the range from the lowest to the highest gold score; one without
    pairs has no numbers.

    Args:
        point: ``pairs``, the file with ``gold`` and ``cosine`` of each scored pair; ``groups``,
            how many; where the run has no scored pairs, there are no numbers.
    """
    file = point.get("pairs")
    if not file or not Path(file).is_file():
        return {}
    with Path(file).open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    pairs = [(float(row["gold"]), float(row["cosine"])) for row in rows]
    cosines = [cosine for _, cosine in pairs]
    found = {"range of cosines": max(cosines) - min(cosines)}
    for group, (_, held) in grouped(pairs, int(point.get("groups", 5))).items():
        found[f"group {group}: mean"] = fmean(held)
        found[f"group {group}: variance"] = pvariance(held)
    return found


def grouped(
    pairs: Sequence[tuple[float, float]], count: int
) -> dict[int, tuple[tuple[float, float], list[float]]]:
    """Return the range of gold scores and the cosines of each group of one width, from 1."""
    low, high = min(gold for gold, _ in pairs), max(gold for gold, _ in pairs)
    width = (high - low) / count
    found: dict[int, list[float]] = {}
    for gold, cosine in pairs:
        place = int(count * (gold - low) / ((high - low) or 1))
        found.setdefault(min(place, count - 1), []).append(cosine)
    return {
        number + 1: ((low + number * width, low + (number + 1) * width), found[number])
        for number in sorted(found)
    }
