"""The records of HiCL; imports no torch."""

from __future__ import annotations

from cse_core.records import (
    LossSpec,
    MinerSpec,
    RecipeSpec,
    RunInfo,
    SliceSpec,
    StoreSpec,
    StudySpec,
)
from cse_core.specs import hookimpl
from cse_hicl.options import (
    LEVEL,
    AveragingOptions,
    EntailmentOptions,
    SameSequenceOptions,
    SegmentsOptions,
)
from cse_hicl.papers import PAPER
from cse_hicl.tables import studies


@hookimpl
def cse_poolers() -> list[SliceSpec]:
    """Return the slice stage."""
    return [
        SliceSpec(
            name="segments",
            summary="cuts texts into segments, and joins their vectors by length or equally",
            factory="cse_hicl.segments:Segments",
            options=SegmentsOptions,
            slices_wrapped=lambda options: options.wrap == "sentence",
            provides=(f"level:{LEVEL}",),
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
            options=SameSequenceOptions,
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
            options=AveragingOptions,
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
            options=EntailmentOptions,
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
    return studies()
