"""A tuned encoder on pairs whose second sentences are changed: study ``ifcl/figure-4a``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cse

_SENTENCE, _TRANSLATION = "sentence2", "fraternal"


def scores(point: Mapping[str, Any]) -> dict[str, float]:
    """Return Spearman's correlation on pairs with changed second sentences.

    Args:
        point: ``model``; ``pairs``, a file of graded pairs or an installed data set, whose test
            pairs are taken; ``aug``, an augmenter of this distribution, empty for none; its
            ``lexicon``; ``dropout``, whether it is on for the second sentences.

    Returns:
        ``spearman``, and how many ``pairs`` there are.

    Raises:
        CseError: If the model or the pairs cannot be read, or the augmenter does not fit.
    """
    from scipy.stats import spearmanr

    from cse import unit

    name = str(point["pairs"])
    if Path(name).is_file():
        columns, placed = cse.read_table(name)
        if missing := {"sentence1", _SENTENCE, "score", _TRANSLATION}.difference(columns):
            raise cse.CseError(f"no column {', '.join(sorted(missing))}", where=name)
        rows = [row for _, row in placed]
    else:  # of a data set without translations each sentence is its own
        rows = [{_TRANSLATION: row[_SENTENCE], **row} for row in _installed(name)]
    translations: dict[str, str] = {}
    for row in rows:
        translations.setdefault(row[_SENTENCE], row[_TRANSLATION])
    model = cse.load(str(point["model"]))
    options = {"lexicon": point["lexicon"]} if point.get("lexicon") else {}
    vectors = model.encode_view(
        {"text": list(translations), _TRANSLATION: list(translations.values())},
        point.get("aug") or None,
        options,
        dropout=bool(point.get("dropout")),
    )
    places = {text: place for place, text in enumerate(translations)}
    first = unit(model.encode([row["sentence1"] for row in rows]))
    second = unit(vectors[[places[row[_SENTENCE]] for row in rows]])
    gold = [float(row["score"]) for row in rows]
    correlation = float(spearmanr(gold, (first * second).sum(axis=1)).statistic)
    if math.isnan(correlation):
        raise cse.CseError("all grades or all cosines are equal", where=name)
    return {"spearman": round(100 * correlation, 4), "pairs": len(rows)}


def _installed(name: str) -> Sequence[Mapping[str, Any]]:
    """Return the test pairs of an installed data set."""
    from cse_cli.api import Installed
    from cse_core.loading import load_factory

    dataset = Installed([]).registry.source(name)
    return list(load_factory(dataset.spec.factory)().pairs("test"))
