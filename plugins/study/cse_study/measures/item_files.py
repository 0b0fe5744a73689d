"""Reading what scores are made of, from the files that ``cse eval`` wrote."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Cosines = Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]]
"""Gold scores and cosines ``[P]`` by a name, such as that of a set."""


def read_cosines(file: Path) -> Cosines:
    """Return gold scores and cosines of each set of a file of ``--pairs-out``.

    A file that is gone, or that something else was written to since, has none.
    """
    columns: dict[str, tuple[list[float], list[float]]] = {}
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
            if next(reader, [])[:3] != ["set", "gold", "cosine"]:
                return {}
            for name, gold, cosine, *_ in reader:
                golds, cosines = columns.setdefault(name, ([], []))
                golds.append(float(gold))
                cosines.append(float(cosine))
    except (OSError, ValueError):
        return {}
    return {name: (np.array(gold), np.array(cosine)) for name, (gold, cosine) in columns.items()}


def read_items(file: Path) -> dict[str, dict[str, NDArray[np.int64]]]:
    """Return ``rank`` and ``right`` ``[N]`` of each set of a file of ``--items-out``.

    A set has one of them.
    """
    columns: dict[tuple[str, str], list[int]] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            for name in ("rank", "right"):
                if row[name]:
                    columns.setdefault((row["set"], name), []).append(int(row[name]))
    found: dict[str, dict[str, NDArray[np.int64]]] = {}
    for (set_, name), values in columns.items():
        found.setdefault(set_, {})[name] = np.array(values)
    return found
