"""The records of ConSERT; imports no torch."""

from __future__ import annotations

from cse_consert.options import (
    EmbeddingDropoutOptions,
    EmbeddingsOptions,
    FeatureCutoffOptions,
    TokenCutoffOptions,
    TokenShuffleOptions,
)
from cse_consert.papers import PAPER
from cse_core.records import AugmenterSpec, Point, RecipeSpec
from cse_core.specs import hookimpl


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
            options=TokenShuffleOptions,
            paper=PAPER,
        ),
        AugmenterSpec(
            name="token-cutoff",
            summary="sets the embeddings of some tokens of a row to zero",
            factory="cse_consert.token_cutoff:TokenCutoff",
            options=TokenCutoffOptions,
            point=_point,
            paper=PAPER,
        ),
        AugmenterSpec(
            name="feature-cutoff",
            summary="sets some features to zero for all tokens of a row",
            factory="cse_consert.feature_cutoff:FeatureCutoff",
            options=FeatureCutoffOptions,
            point=_point,
            paper=PAPER,
        ),
        AugmenterSpec(
            name="embedding-dropout",
            summary="sets some elements of a row's embeddings to zero",
            factory="cse_consert.embedding_dropout:EmbeddingDropout",
            options=EmbeddingDropoutOptions,
            point=_point,
            paper=PAPER,
        ),
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the unsupervised setting."""
    return [
        RecipeSpec(
            name="consert",
            summary="feature cutoff and shuffled positions, both directions, 2N-2 negatives",
            path="cse_consert:recipes/consert.toml",
            paper=PAPER,
        )
    ]
