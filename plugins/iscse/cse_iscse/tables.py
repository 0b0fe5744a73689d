"""The studies of IS-CSE: tables and figures of its paper, each a file in ``studies/``."""

from __future__ import annotations

from cse_core.records import StudySpec
from cse_iscse.papers import PAPER

_SUMMARIES = {
    "table-1": "IS-CSE over SimCSE, DCLR and CARDS",
    "table-2": "Settings of IS-CSE, the paper's beside the recipe's",
    "table-3": "Positives smoothed over neighbours, over clusters, and both",
    "table-4": "Vectors of the buffer",
    "table-5": "Neighbours of a sentence",
    "table-6": "Weight of the smoothed loss, constant and rising",
    "table-7": "Temperature of the smoothing",
    "table-8": "Transfer tasks",
    "table-9": "What a sentence is smoothed over: its neighbours in the buffer",
    "figure-1": "SimCSE beside IS-CSE, from their plans",
    "figure-2": "Buffer, retrieval and smoothing, from the plans of both groups",
    "figure-3": "Alignment and uniformity",
    "figure-4": "Cosines of pairs, by groups of their gold score",
    "figure-5": "Ten seeds of SimCSE, DCLR and IS-CSE",
}


def studies() -> list[StudySpec]:
    """Return the records of all of them."""
    return [
        StudySpec(
            name=f"iscse/{place}",
            summary=summary,
            path=f"cse_iscse:studies/{place}.toml",
            paper=PAPER,
        )
        for place, summary in _SUMMARIES.items()
    ]
