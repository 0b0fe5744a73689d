"""The studies of MoCoSE: tables and figures of its paper, each a file in ``studies/``."""

from __future__ import annotations

from cse_core.records import StudySpec
from cse_mocose.papers import PAPER

_SUMMARIES = {
    "table-1": "MoCoSE and SimCSE",
    "table-2": "Transfer tasks",
    "table-3": "Decay of the moving average at the start",
    "table-4": "Layers of projector and predictor",
    "table-5": "Augmentation of both views",
    "table-6a": "Dimension of heads and queue",
    "table-6b": "Batch size with one size of the queue",
    "table-7": "Queue size, and how much of it is full at the start",
    "table-8": "Newer and older keys",
    "table-9": "Step of the adversarial perturbation",
    "figure-1": "The branches, heads and queue of MoCoSE, from its plan",
    "figure-2": "Score over the traceable distance",
    "figure-3": "Score over the traceable distance, a curve for each batch size",
    "figure-4": "Collapse without a predictor: decay 0, so that the target is the online encoder",
    "figure-5": "Collapse with a predictor: decay 0, so that the target is the online encoder",
    "figure-6": "Singular values of the sentence vectors",
    "figure-7": "Decay of the moving average at the start, in finer steps",
    "figure-8": "Rates of the augmenters, and of the encoder's dropout",
    "figure-9": "Dimension of heads and queue, several seeds each",
    "figure-10": "First fill of a queue of 512",
    "figure-11": "Queue size and first fill, in finer steps",
    "figure-12": "Score over the traceable distance in batches of 32",
    "appendix-A.11": "Mean age of the weights behind a key, against 1 / (1 - eta)",
}


def studies() -> list[StudySpec]:
    """Return the records of all of them."""
    return [
        StudySpec(
            name=f"mocose/{place}",
            summary=summary,
            path=f"cse_mocose:studies/{place}.toml",
            paper=PAPER,
        )
        for place, summary in _SUMMARIES.items()
    ]
