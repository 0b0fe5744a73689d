"""The records of the losses without negatives; imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import LossSpec, Paper, RecipeSpec, StudySpec, TransformSpec

if TYPE_CHECKING:
    from cse_redundancy.options import TargetOptions

BARLOW = Paper("Zbontar et al.: Barlow Twins, ICML 2021", "cse_redundancy:papers/barlow-twins.bib")
VICREG = Paper("Bardes, Ponce and LeCun: VICReg, ICLR 2022", "cse_redundancy:papers/vicreg.bib")
LEJEPA = Paper("Balestriero and LeCun: LeJEPA, 2025", "cse_redundancy:papers/lejepa.bib")
UNSEE = Paper("Cagatan: UNSEE, EACL 2024", "cse_redundancy:papers/unsee.bib")


def _teacher(options: TargetOptions) -> tuple[str, ...]:
    return () if options.teacher is None else (f"branch:{options.teacher}",)


def _taught(options: TargetOptions) -> tuple[tuple[str, str], ...]:
    if options.teacher is None:
        return ()
    return (("anchor", options.teacher), (options.target, options.teacher))


@hookimpl
def cse_losses() -> list[LossSpec]:
    """Return the losses."""
    return [
        LossSpec(
            name="barlow-twins",
            summary="correlations of both views' dimensions near the identity",
            factory="cse_redundancy.barlow_twins:BarlowTwins",
            options="cse_redundancy.options:BarlowTwinsOptions",
            requires=_teacher,
            encodes=_taught,
            contrastive=False,
            paper=BARLOW,
        ),
        LossSpec(
            name="vicreg",
            summary="near vectors of a text, spread and uncorrelated dimensions",
            factory="cse_redundancy.vicreg:Vicreg",
            options="cse_redundancy.options:VicregOptions",
            requires=_teacher,
            encodes=_taught,
            contrastive=False,
            paper=VICREG,
        ),
        LossSpec(
            name="sigreg",
            summary="near vectors of a text, all like an isotropic Gaussian",
            factory="cse_redundancy.sigreg:Sigreg",
            options="cse_redundancy.options:SigregOptions",
            contrastive=False,
            paper=LEJEPA,
        ),
    ]


@hookimpl
def cse_transforms() -> list[TransformSpec]:
    """Return the layers between vectors and losses."""
    return [
        TransformSpec(
            name="expander",
            summary="linear layers with batch normalisation, in training only",
            factory="cse_redundancy.expander:Expander",
            options="cse_redundancy.options:ExpanderOptions",
            paper=UNSEE,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return UNSEE's recipes."""
    return records_of_files(RecipeSpec, "cse_redundancy:recipes", paper=UNSEE)


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return the comparison of the losses."""
    return records_of_files(StudySpec, "cse_redundancy:studies", prefix="redundancy/", paper=UNSEE)
