"""The records of the angular margin; imports no torch."""

from __future__ import annotations

from cse_arcloss.options import ArcOptions
from cse_core.hookspecs import hookimpl
from cse_core.records import LossSpec, RecipeSpec

PAPER = (
    "Zhang et al.: A Contrastive Framework for Learning Sentence Representations from Pairwise "
    "and Triple-wise Perspective in Angular Space, ACL 2022"
)


@hookimpl
def cse_losses() -> list[LossSpec]:
    """Return the loss."""
    return [
        LossSpec(
            name="arc",
            summary="InfoNCE whose positive has an additive angular margin",
            factory="cse_arcloss.arc:Arc",
            options=ArcOptions,
            paper=PAPER,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipe."""
    return [
        RecipeSpec(
            name="arcloss",
            summary="dropout views with an angular margin of 10 degrees",
            path="cse_arcloss:recipes/arcloss.toml",
            paper=PAPER,
        )
    ]
