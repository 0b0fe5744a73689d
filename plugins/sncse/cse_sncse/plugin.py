"""The records of SNCSE; imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import AugmenterSpec, LossSpec, Paper, RecipeSpec, RowPoolerSpec

if TYPE_CHECKING:
    from cse_sncse.options import NegationOptions

VIEW = "soft_negative"

PAPER = Paper("Wang and Dou: SNCSE, ICIC 2023", "cse_sncse:paper.bib")


def _negation_provides(options: NegationOptions) -> tuple[str, ...]:
    return (f"view:{VIEW}",) if options.views is None or VIEW in options.views else ()


def _negation_requires(options: NegationOptions) -> tuple[str, ...]:
    return (f"column:{options.column}",) if options.method == "column" else ()


@hookimpl
def cse_augmenters() -> list[AugmenterSpec]:
    """Return the augmenter that makes soft negatives."""
    return [
        AugmenterSpec(
            name="negation",
            summary="the negated sentence, as a soft negative",
            factory="cse_sncse.negation:Negation",
            options="cse_sncse.options:NegationOptions",
            views=(VIEW,),
            point="text",
            provides=_negation_provides,
            requires=_negation_requires,
            resolve_options=lambda options, facts: options.resolved(),
            paper=PAPER,
        )
    ]


@hookimpl
def cse_poolers() -> list[RowPoolerSpec]:
    """Return the row pooler."""
    return [
        RowPoolerSpec(
            name="mask-prompt",
            summary="the state of the mask token in a prompt around the text",
            factory="cse_sncse.mask_prompt:MaskPrompt",
            options="cse_sncse.options:MaskPromptOptions",
            prompts=True,
            requires=("mask-token",),
            paper=PAPER,
        )
    ]


@hookimpl
def cse_losses() -> list[LossSpec]:
    """Return the bidirectional margin loss."""
    return [
        LossSpec(
            name="bml",
            summary="soft negatives less similar than the positive, within a band",
            factory="cse_sncse.bml:Bml",
            options="cse_sncse.options:BmlOptions",
            requires=lambda options: (f"view:{options.view}",),
            contrastive=False,
            paper=PAPER,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipe."""
    return records_of_files(RecipeSpec, "cse_sncse:recipes", paper=PAPER)
