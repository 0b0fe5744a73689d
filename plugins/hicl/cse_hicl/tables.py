"""The studies of HiCL: tables and figures of its paper, each a file in ``studies/``."""

from __future__ import annotations

from cse_core.records import StudySpec
from cse_hicl.papers import PAPER

_SUMMARIES = {
    "table-1": "HiCL over SimCSE, ESimCSE and SNCSE",
    "table-2": "How long the training sentences are, in tokens",
    "table-3": "Segments joined by their lengths or equally",
    "table-4": "Other segments of a text as positives, as negatives, or as neither",
    "table-5": "HiCL on sentences and paragraphs together",
    "table-6": "The base method, HiCL, and the base method on texts that were cut first",
    "table-7": "Weights of the local and the global loss",
    "table-8": "Long texts, classified by their vectors",
    "table-9": "HiCL and HiCLv2, which adds a segment against its own text",
    "table-10": "Batches of 256 and of 64",
    "table-11": "Transfer tasks, without a masked-language loss",
    "table-12": "Seconds of a step, packed and padded",
    "table-13": "How alpha and the learning rate are chosen",
    "table-14": "Weight of the entailment loss of HiCLv2",
    "table-15": "HiCL over three base methods with three seeds, settings not tuned again",
    "table-16": "Negative segments of a text summed or averaged",
    "figure-1": "The parts, views and losses of HiCL, from its plan",
    "figure-2": "Tokens of a segment",
    "figure-3": "The parts, views and losses of HiCLv2, from its plan",
    "section-3.3": "Operations of one text as segments and as a whole",
    "section-5.4": "Memory and the largest batch at 512 tokens",
}


def studies() -> list[StudySpec]:
    """Return the records of all of them."""
    return [
        StudySpec(
            name=f"hicl/{place}",
            summary=summary,
            path=f"cse_hicl:studies/{place}.toml",
            paper=PAPER,
        )
        for place, summary in _SUMMARIES.items()
    ]
