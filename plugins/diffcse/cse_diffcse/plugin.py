"""The records of DiffCSE; imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import LossSpec, Paper, RecipeSpec, StudySpec, TokenLossSpec, TransformSpec

if TYPE_CHECKING:
    from cse_diffcse.options import ReplacedTokensOptions

PAPER = Paper("Chuang et al.: DiffCSE, NAACL 2022", "cse_diffcse:paper.bib")


def _views(options: ReplacedTokensOptions) -> tuple[str, ...]:
    return (options.view, *options.others)


@hookimpl
def cse_losses() -> list[LossSpec]:
    """Return the loss of the discriminator."""
    return [
        TokenLossSpec(
            name="replaced-tokens",
            summary="a discriminator that knows the sentence's vector finds replaced tokens",
            factory="cse_diffcse.loss:ReplacedTokens",
            options="cse_diffcse.options:ReplacedTokensOptions",
            tokens=_views,
            requires=lambda options: ("mask-token", *(f"view:{v}" for v in _views(options))),
            paper=PAPER,
        )
    ]


@hookimpl
def cse_transforms() -> list[TransformSpec]:
    """Return the projection."""
    return [
        TransformSpec(
            name="batch-norm-mlp",
            summary="two linear layers with batch normalisation over all views, in training only",
            factory="cse_diffcse.batch_norm:BatchNormMlp",
            options="cse_diffcse.options:BatchNormMlpOptions",
            paper=PAPER,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipe."""
    return records_of_files(RecipeSpec, "cse_diffcse:recipes", paper=PAPER)


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return the comparison with SimCSE."""
    return records_of_files(StudySpec, "cse_diffcse:studies", prefix="diffcse/", paper=PAPER)
