"""The records of Contrastive Tension; imports no torch."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import BranchSpec, LossSpec, Paper, RecipeSpec, StudySpec

PAPER = Paper("Carlsson et al.: Contrastive Tension, ICLR 2021", "cse_tension:paper.bib")


@hookimpl
def cse_branches() -> list[BranchSpec]:
    """Return the second encoder."""
    return [
        BranchSpec(
            name="twin",
            summary="a second encoder of the same start, trained too and not saved",
            factory="cse_tension.twin:Twin",
            options="cse_tension.options:TwinOptions",
            provides=("branch:twin",),
            trainable=True,
            paper=PAPER,
        )
    ]


@hookimpl
def cse_losses() -> list[LossSpec]:
    """Return the losses of single pairs and of the batch."""
    return [
        LossSpec(
            name="tension",
            summary="whether two vectors are of one text, by their dot product",
            factory="cse_tension.loss:Tension",
            options="cse_tension.options:TensionOptions",
            paper=PAPER,
        ),
        LossSpec(
            name="learned-infonce",
            summary="InfoNCE with a learned temperature",
            factory="cse_tension.loss:LearnedInfonce",
            options="cse_tension.options:LearnedInfonceOptions",
            paper=PAPER,
        ),
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipes of both losses."""
    return records_of_files(RecipeSpec, "cse_tension:recipes", paper=PAPER)


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return the comparison of both losses."""
    return records_of_files(StudySpec, "cse_tension:studies", prefix="tension/", paper=PAPER)
