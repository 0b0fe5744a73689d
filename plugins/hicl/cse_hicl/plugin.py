"""The records of HiCL; imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import LossSpec, MinerSpec, Paper, RecipeSpec, SliceSpec, StoreSpec, StudySpec
from cse_core.run_info import RunInfo

if TYPE_CHECKING:
    from cse_hicl.options import SegmentsOptions

PAPER = Paper("Wu et al.: HiCL, Findings of EMNLP 2023", "cse_hicl:paper.bib")


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
    return records_of_files(RecipeSpec, "cse_hicl:recipes", paper=PAPER)


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return the tables and figures of the paper."""
    return records_of_files(StudySpec, "cse_hicl:studies", prefix="hicl/", paper=PAPER)
