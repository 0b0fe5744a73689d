"""The studies of IFCL: tables and figures of its paper, each a file in ``studies/``."""

from __future__ import annotations

from cse_core.records import StudySpec
from cse_ifcl.papers import PAPER

_SUMMARIES = {
    "table-1": "IFCL beside SimCSE, ConSERT, DCLR and MoCoSE",
    "table-2": "IFCL without the fraternal twin, the twins loss or the queue",
    "table-3": "Chinese: an untrained encoder, SimCSE and IFCL",
    "table-4": "Mutual information of the twins, and of paraphrases",
    "figure-1": "Cosines of the twins over training, with and without the margin",
    "figure-2": "Views, branches, queue and losses of IFCL, from its plan",
    "figure-3": "Age and weight of every stored row",
    "figure-4a": "Second sentences changed by five augmentations, scored by a tuned encoder",
    "figure-4b": "Cosine of a pair against its gold score",
    "figure-4c": "Negatives of earlier batches: the hippocampus queue, none, a momentum queue",
    "supplement": "Share of the fusion, batches of the queue and how fast it forgets",
}


def studies() -> list[StudySpec]:
    """Return the records of all of them."""
    return [
        StudySpec(
            name=f"ifcl/{place}",
            summary=summary,
            path=f"cse_ifcl:studies/{place}.toml",
            paper=PAPER,
        )
        for place, summary in _SUMMARIES.items()
    ]
