"""The records of TSDAE; imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import AugmenterSpec, LossSpec, Paper, RecipeSpec, TokenLossSpec
from cse_core.run_info import RunInfo

if TYPE_CHECKING:
    from cse_denoising.options import ReconstructionOptions

LIKE_BERT = ("bert", "roberta", "xlm-roberta", "camembert", "electra")
"""Families whose layers can be read from left to right as BERT's."""
PAPER = Paper(
    "Wang, Reimers and Gurevych: TSDAE, Findings of EMNLP 2021", "cse_denoising:paper.bib"
)


def _decoder_of_the_family(options: ReconstructionOptions, info: RunInfo) -> ReconstructionOptions:
    if info.family is None or options.decoder == "new":
        return options
    fits = info.family in LIKE_BERT
    if options.decoder == "auto":
        made = "tied" if fits and options.layers is None else "new"
        return options.model_copy(update={"decoder": made})
    if not fits:
        what = f"decoder = {options.decoder} needs an encoder like BERT, not {info.family}"
        raise ValueError(f"{what}: use new, or auto")
    return options


@hookimpl
def cse_augmenters() -> list[AugmenterSpec]:
    """Return the augmenter that deletes words."""
    return [
        AugmenterSpec(
            name="delete-words",
            summary="deletes most words of a text",
            factory="cse_denoising.delete_words:DeleteWords",
            options="cse_denoising.options:DeleteWordsOptions",
            views=("anchor",),
            paper=PAPER,
        )
    ]


@hookimpl
def cse_losses() -> list[LossSpec]:
    """Return the loss of the decoder."""
    return [
        TokenLossSpec(
            name="reconstruction",
            summary="cross entropy of a decoder that rebuilds the text from its vector",
            factory="cse_denoising.loss:Reconstruction",
            options="cse_denoising.options:ReconstructionOptions",
            reads=lambda options: {options.column: "text"},
            resolve_options=_decoder_of_the_family,
            paper=PAPER,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipe."""
    return records_of_files(RecipeSpec, "cse_denoising:recipes", paper=PAPER)
