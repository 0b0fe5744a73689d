"""The geometry of a set's sentences as ``--json`` shows it."""

from __future__ import annotations

from typing import Any

from cse_evaluation.geometry import POSITIVE_SHARE, TEMPERATURE, Geometry


def geometry_json(found: Geometry) -> dict[str, Any]:
    """Return the numbers with file, counts and threshold beside each."""
    count = found.uniformity_sentences
    distinct = {"file": found.file, "sentences": found.sentences}
    return {
        "alignment": {
            "value": _rounded(found.alignment),
            "file": found.file,
            "pairs": found.alignment_pairs,
            "scored_above": found.threshold,
            "share_of_highest_score": POSITIVE_SHARE,
        },
        "uniformity": {
            "value": _rounded(found.uniformity),
            "file": found.file,
            "sentences": count,
            "pairs": count * (count - 1) // 2,
            "t": TEMPERATURE,
        },
        "mean_cosine": {
            "value": _rounded(found.mean_cosine),
            **distinct,
            "pairs": found.sentences * (found.sentences - 1) // 2,
        },
        "effective_rank": {"value": _rounded(found.effective_rank), **distinct},
        "singular_values": {
            "values": [_rounded(value) for value in found.singular_values],
            **distinct,
            "vectors": "unit, not centred",
        },
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
