"""The records of the losses over graded pairs, classes and triplets; imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import ColumnType, LossSpec, Paper, RecipeSpec, StudySpec

if TYPE_CHECKING:
    from cse_graded.options import ClassOptions, GradedOptions, TripletOptions

COSENT = Paper("Su: CoSENT, 2022", "cse_graded:papers/su-2022-cosent.bib")
ANGLE = Paper(
    "Li and Li: AnglE-optimized Text Embeddings, ACL 2024", "cse_graded:papers/li-li-2024-aoe.bib"
)
SUPCON = Paper(
    "Khosla et al.: Supervised Contrastive Learning, NeurIPS 2020",
    "cse_graded:papers/khosla-etal-2020-supervised.bib",
)
TRIPLET = Paper("Schroff et al.: FaceNet, CVPR 2015", "cse_graded:papers/schroff-2015-facenet.bib")


def _needs(options: GradedOptions) -> tuple[str, ...]:
    return ("pairs", *(["view:negative"] if options.own_negatives else []))


def _classes(options: ClassOptions) -> dict[str, ColumnType]:
    return {options.column: "label"} if options.column else {}


def _needs_negatives(options: TripletOptions) -> tuple[str, ...]:
    return ("view:negative",) if options.column is None and options.triplets == "own" else ()


@hookimpl
def cse_losses() -> list[LossSpec]:
    """Return the losses."""
    graded = [
        LossSpec(
            name=name,
            summary=summary,
            factory=factory,
            options=options,
            requires=_needs,
            reads=lambda options: {options.column: "float"} if options.column else {},
            contrastive=False,
            paper=paper,
        )
        for name, summary, factory, options, paper in (
            ("cosent", "pairs with higher scores have larger cosines",
             "cse_graded.cosent:Cosent", "cse_graded.options:GradedOptions", COSENT),
            ("angle", "pairs with higher scores differ less in their complex angle",
             "cse_graded.angle:Angle", "cse_graded.options:AngleOptions", ANGLE),
        )
    ]  # fmt: skip
    return [
        *graded,
        LossSpec(
            name="supcon",
            summary="texts of one class are near each other",
            factory="cse_graded.classes:SupCon",
            options="cse_graded.options:SupConOptions",
            reads=_classes,
            contrastive=False,
            paper=SUPCON,
        ),
        LossSpec(
            name="triplet",
            summary="a positive nearer than a negative by a margin, also batch-hard over classes",
            factory="cse_graded.triplets:Triplet",
            options="cse_graded.options:TripletOptions",
            requires=_needs_negatives,
            reads=_classes,
            contrastive=False,
            paper=TRIPLET,
        ),
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipes of both losses."""
    return [
        *records_of_files(RecipeSpec, "cse_graded:recipes", "cosent", paper=COSENT),
        *records_of_files(RecipeSpec, "cse_graded:recipes", "angle", paper=ANGLE),
    ]


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return the comparison of the losses."""
    return records_of_files(StudySpec, "cse_graded:studies", prefix="graded/", paper=ANGLE)
