"""The records of ConSERT; imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import AugmenterSpec, Paper, Point, RecipeSpec

if TYPE_CHECKING:
    from cse_consert.options import EmbeddingsOptions

PAPER = Paper("Yan, Li, Wang, Zhang, Wu and Xu: ConSERT, ACL 2021", "cse_consert:paper.bib")


def _point(options: EmbeddingsOptions) -> Point:
    return options.at


@hookimpl
def cse_augmenters() -> list[AugmenterSpec]:
    """Return the four augmenters."""
    return [
        AugmenterSpec(
            name="token-shuffle",
            summary="shuffles the positions of a row's tokens",
            factory="cse_consert.token_shuffle:TokenShuffle",
            options="cse_consert.options:TokenShuffleOptions",
            paper=PAPER,
        ),
        AugmenterSpec(
            name="token-cutoff",
            summary="sets the embeddings of some tokens of a row to zero",
            factory="cse_consert.embeddings:TokenCutoff",
            options="cse_consert.options:TokenCutoffOptions",
            point=_point,
            paper=PAPER,
        ),
        AugmenterSpec(
            name="feature-cutoff",
            summary="sets some features to zero for all tokens of a row",
            factory="cse_consert.embeddings:FeatureCutoff",
            options="cse_consert.options:FeatureCutoffOptions",
            point=_point,
            paper=PAPER,
        ),
        AugmenterSpec(
            name="embedding-dropout",
            summary="sets some elements of a row's embeddings to zero",
            factory="cse_consert.embeddings:EmbeddingDropout",
            options="cse_consert.options:EmbeddingDropoutOptions",
            point=_point,
            paper=PAPER,
        ),
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the unsupervised setting."""
    return records_of_files(RecipeSpec, "cse_consert:recipes", paper=PAPER)
