"""A tuned encoder on pairs whose second sentences are changed: study ``ifcl/figure-4a``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

_SENTENCE, _TRANSLATION = "sentence2", "fraternal"


def scores(point: Mapping[str, Any]) -> dict[str, float]:
    """Return Spearman's correlation on pairs with changed second sentences.

    Args:
        point: ``model``; ``pairs``, a file of graded pairs or an installed data set, whose test
            pairs are taken; ``aug``, an augmenter, empty for none; ``options`` of it,
            ``aug.NAME.OPTION=VALUE``; ``dropout``, whether it is on for the second sentences.

    Returns:
        ``spearman``, and how many ``pairs`` there are.

    Raises:
        CseError: If the model or the pairs cannot be read, or the augmenter does not fit.
    """
    from cse import evaluate

    options: dict[str, Any] = {"no_baselines": True, "quiet": True}
    if point.get("dropout"):
        options["dropout"] = True
    if point.get("aug"):
        options |= {"aug": [point["aug"]], "settings": list(point.get("options", ()))}
    with TemporaryDirectory() as folder:
        pairs = point["pairs"]
        if not Path(pairs).is_file():
            pairs = Path(folder, f"{pairs}.test.jsonl")
            pairs.write_text(_lines(_installed(str(point["pairs"]))), encoding="utf-8")
        found = evaluate(point["model"], pairs=[str(pairs)], **options)
    (result,) = found["results"].values()
    return {"spearman": result["spearman"], "pairs": result["pairs"]}


def _installed(name: str) -> Iterable[Mapping[str, Any]]:
    """Return the test pairs of an installed data set."""
    from cse_cli.plugins.installed import Installed
    from cse_core.runtime.loading import load_factory

    dataset = Installed([]).registry.dataset(name)
    rows: Iterable[Mapping[str, Any]] = load_factory(dataset.spec.factory)().pairs("test")
    return rows


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return pairs as lines of JSON; one without a translation is its own."""
    whole = ({_TRANSLATION: row[_SENTENCE], **row} for row in rows)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in whole)
