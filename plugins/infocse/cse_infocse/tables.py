"""The studies of InfoCSE: tables and figures of its paper, each a file in ``studies/``."""

from __future__ import annotations

from cse_core.records import StudySpec
from cse_infocse.papers import PAPER

_SUMMARIES = {
    "table-1": "Titles found by documents, without labels",
    "table-2": "Few labels, from different starts",
    "table-3a": "Fine-tuning after the clusters, or in turns with them",
    "table-3b": "Clusters inside a document, or of the whole corpus",
    "table-3c": "Rounds of clusters",
    "table-3d": "Starts of the encoder",
    "table-3e": "A tuned model clusters in the first round",
    "table-4": "Documents and their sentences",
    "table-5": "Settings of InfoCSE, the paper's beside the recipes'",
    "figure-1": "Three kinds of weak positives",
    "figure-2": "One document: its graph, the pruned graph, its clusters",
    "figure-3": "Rounds of clusters and rounds of labels, from the plan of InfoCSE++",
    "appendix-D": "Clusters of one document, round by round",
}


def studies() -> list[StudySpec]:
    """Return the records of all of them."""
    return [
        StudySpec(
            name=f"infocse/{place}",
            summary=summary,
            path=f"cse_infocse:studies/{place}.toml",
            paper=PAPER,
        )
        for place, summary in _SUMMARIES.items()
    ]
