"""The records of MoCoSE; imports no torch."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import AugmenterSpec, HeadSpec, Paper, RecipeSpec, StoreSpec, StudySpec
from cse_mocose import distance, resolution

PAPER = Paper("Cao et al.: MoCoSE, Findings of ACL 2022", "cse_mocose:paper.bib")


@hookimpl
def cse_augmenters() -> list[AugmenterSpec]:
    """Return the adversarial views, and dropped tokens as the authors' code drops them."""
    return [
        AugmenterSpec(
            name="fgsm",
            summary="moves word embeddings along the sign of the gradient",
            factory="cse_mocose.fgsm:Fgsm",
            options="cse_mocose.options:FgsmOptions",
            point="word_embeddings",
            gradient=lambda options: options.gradient,
            requires=resolution.requires,
            paper=PAPER,
            plan_warnings=resolution.warnings,
        ),
        AugmenterSpec(
            name="token-drop",
            summary="sets the word embeddings of some places of a padded row to zero",
            factory="cse_mocose.token_drop:TokenDrop",
            options="cse_mocose.options:TokenDropOptions",
            point="word_embeddings",
            paper=PAPER,
        ),
    ]


@hookimpl
def cse_poolers() -> list[HeadSpec]:
    """Return the heads."""
    return [
        HeadSpec(
            name="projector",
            summary="linear layers with layer norm and dropout, in every branch",
            factory="cse_mocose.heads:Projector",
            options="cse_mocose.options:ProjectorOptions",
            paper=PAPER,
        ),
        HeadSpec(
            name="predictor",
            summary="linear layers that end in tanh, only in the online branch",
            factory="cse_mocose.heads:Predictor",
            options="cse_mocose.options:PredictorOptions",
            paper=PAPER,
        ),
    ]


@hookimpl
def cse_negative_stores() -> list[StoreSpec]:
    """Return the queue."""
    return [
        StoreSpec(
            name="queue",
            summary="positives of earlier steps by a lagging branch, with a small first fill",
            factory="cse_mocose.queue:Queue",
            options="cse_mocose.options:QueueOptions",
            keeps=True,
            provides=lambda options: ("view:queued",) if options.update == "latest" else (),
            requires=lambda options: (f"view:{options.view}",),
            paper=PAPER,
            plan_notes=distance.notes,
            plan_warnings=distance.warnings,
            resolve_options=distance.resolve_options,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the paper's setting."""
    return records_of_files(RecipeSpec, "cse_mocose:recipes", paper=PAPER)


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return the tables and figures of the paper."""
    return records_of_files(StudySpec, "cse_mocose:studies", prefix="mocose/", paper=PAPER)
