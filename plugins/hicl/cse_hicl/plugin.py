"""The records of HiCL; imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.records import LossSpec, MinerSpec, Paper, RecipeSpec, SliceSpec, StoreSpec, StudySpec
from cse_core.run_info import RunInfo

if TYPE_CHECKING:
    from cse_hicl.options import SegmentsOptions

PAPER = Paper(
    "Wu et al.: HiCL, Findings of EMNLP 2023",
    bibtex=r"""@inproceedings{wu-etal-2023-hicl,
    title = "{HiCL}: Hierarchical Contrastive Learning of Unsupervised Sentence Embeddings",
    author = "Wu, Zhuofeng and Xiao, Chaowei and Vydiswaran, V.G. Vinod",
    booktitle = "Findings of the Association for Computational Linguistics: EMNLP 2023",
    year = "2023",
}""",
)

STUDIES = {
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
"""Tables and figures of the paper, each a file in ``studies/``."""


@hookimpl
def cse_poolers() -> list[SliceSpec]:
    """Return the slice stage."""
    return [
        SliceSpec(
            name="segments",
            summary="cuts texts into segments, and joins their vectors by length or equally",
            factory="cse_hicl.segments:Segments",
            options="cse_hicl.options:SegmentsOptions",
            slices_wrapped=lambda options: options.wrap == "sentence",
            provides=("level:segment",),
            resolve_options=_checked,
            paper=PAPER,
        )
    ]


def _checked(options: SegmentsOptions, facts: RunInfo) -> SegmentsOptions:
    if facts.positions is not None and options.length > facts.positions:
        raise ValueError(
            f"length = {options.length} is longer than the {facts.positions} that the encoder"
            " takes; the paper tried 16 to 40: --set pool.segments.length=32"
        )
    return options


@hookimpl
def cse_positive_miners() -> list[MinerSpec]:
    """Return the segments of one text as positives of each other."""
    return [
        MinerSpec(
            name="same-sequence",
            summary="the other segments of a segment's own text are its positives too",
            factory="cse_hicl.same_sequence:SameSequence",
            options="cse_hicl.options:SameSequenceOptions",
            provides=("positives:same-sequence",),
            requires=lambda options: (f"level:{options.level}", f"view:{options.view}"),
            paper=PAPER,
        )
    ]


@hookimpl
def cse_negative_stores() -> list[StoreSpec]:
    """Return the weights of the averaging variant."""
    return [
        StoreSpec(
            name="averaging",
            summary="the negative segments of a text count together as one negative",
            factory="cse_hicl.averaging:Averaging",
            options="cse_hicl.options:AveragingOptions",
            requires=lambda options: (f"level:{options.level}",),
            paper=PAPER,
        )
    ]


@hookimpl
def cse_losses() -> list[LossSpec]:
    """Return the third term of HiCLv2."""
    return [
        LossSpec(
            name="entailment",
            summary="a segment against its own text among the texts of the batch (HiCLv2)",
            factory="cse_hicl.entailment:Entailment",
            options="cse_hicl.options:EntailmentOptions",
            requires=lambda options: (f"level:{options.level}", f"view:{options.sentences}"),
            contrastive=False,
            paper=PAPER,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return HiCL over three methods, and HiCLv2 over two."""
    summaries = {
        "hicl": "long texts as segments: SimCSE's loss over segments and over whole texts",
        "hicl-v2": "HiCL with a third term: a segment and its own text (HiCLv2)",
        "hicl-esimcse": "HiCL over ESimCSE: repeated words, a momentum queue of whole texts",
        "hicl-sncse": "HiCL over SNCSE: prompts around every segment, negations of whole texts",
        "hicl-v2-sncse": "HiCLv2 over SNCSE: a segment and its own text beside the margin loss",
    }
    return [
        RecipeSpec(name=name, summary=summary, path=f"cse_hicl:recipes/{name}.toml", paper=PAPER)
        for name, summary in summaries.items()
    ]


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return the tables and figures of the paper."""
    return [
        StudySpec(
            name=f"hicl/{place}",
            summary=summary,
            path=f"cse_hicl:studies/{place}.toml",
            paper=PAPER,
        )
        for place, summary in STUDIES.items()
    ]
