"""What studies of several papers measure without training, and what ``cse eval`` wrote of runs."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

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
        with file.open(encoding="utf-8") as opened:  # not by csv: a text may be of any length
            rows = (line.rstrip("\n").split("\t") for line in opened)
            if next(rows, [])[:3] != ["set", "gold", "cosine"]:
                return {}
            for name, gold, cosine, *_ in rows:
                golds, cosines = columns.setdefault(name, ([], []))
                golds.append(float(gold))
                cosines.append(float(cosine))
    except (OSError, ValueError):
        return {}
    return {name: (np.array(gold), np.array(cosine)) for name, (gold, cosine) in columns.items()}


def read_items(file: Path) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Return ``rank``, ``right`` or measures ``[N]`` of each set of a file of ``--items-out``.

    Those of judged queries are ``ndcg@10`` and others.
    """
    sets: dict[str, dict[str, list[float]]] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            columns = sets.setdefault(row.pop("set"), {})
            for name, value in row.items():
                if value and name != "item":
                    columns.setdefault(name, []).append(float(value))
    return {set_: {n: np.array(v) for n, v in columns.items()} for set_, columns in sets.items()}


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
    golds, cosines = (np.concatenate(part) for part in zip(*sets.values(), strict=True))
    facts = {"range of cosines": float(np.ptp(cosines))}
    count, lowest = int(point.get("groups", 5)), golds.min()
    width = (golds.max() - lowest) or 1
    places = np.minimum((count * (golds - lowest) / width).astype(int), count - 1)
    for place in np.unique(places):
        chosen = cosines[places == place]
        facts[f"group {place + 1}: mean"] = float(chosen.mean())
        facts[f"group {place + 1}: variance"] = float(chosen.var())
    return facts


def settings(point: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of a recipe as they are for an encoder of some family and size.

    The recipe is composed with the configuration of such an encoder; there are no weights.

    Args:
        point: ``recipe``; ``family``, the model type, such as ``bert``; ``hidden``, its hidden
            size; ``options``, the paths of those that are returned.

    Returns:
        The options by path. The values of a list are numbered, ``train.betas.1``; one with a unit
        has it in its name, ``"train.patience, steps"``; one that nothing sets is None.
    """
    from cse import plan
    from cse_cli.api import CORE_OPTIONS
    from cse_core.errors import CseError, did_you_mean
    from cse_study.planning.composing import flat_options

    configuration = {
        "model_type": point["family"],
        "hidden_size": point["hidden"],
        "num_hidden_layers": 24 if point["hidden"] >= 1024 else 12,
        "num_attention_heads": max(point["hidden"] // 64, 1),
        "max_position_embeddings": 512,
    }
    with TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(configuration), encoding="utf-8")
        planned = plan(point["recipe"], model=folder, dev="none").to_dict()["settings"]
    known: dict[str, Any] = {
        f"{table}.{name}": None for table, cls in CORE_OPTIONS.items() for name in cls.model_fields
    }
    known |= flat_options(planned)
    for path in point["options"]:
        if path not in known:
            what = "the recipe has no such setting"
            raise CseError(what, where="options", value=path, hint=did_you_mean(path, known))
    numbers = (_numbers(path, known[path]) for path in point["options"])
    return {name: value for part in numbers for name, value in part}


def _numbers(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the values of an option that has several, a number with its unit as a number."""
    if isinstance(value, list | tuple):
        yield from ((f"{path}.{at}", item) for at, item in enumerate(value, 1))
    elif isinstance(value, str) and (match := re.fullmatch(r"(\d+) (\w+)", value)):
        yield f"{path}, {match[2]}", int(match[1])
    else:
        yield path, value
