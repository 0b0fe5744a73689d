"""Options of ConSERT's augmenters."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cse_core.options import AugmenterOptions

TokenChoice = Literal["all", "content"]
Rate = Annotated[float, Field(ge=0, lt=1)]


class TokenShuffleOptions(AugmenterOptions):
    """Options of ``token-shuffle``."""

    rate: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of a row's tokens whose positions are shuffled, rounded down; ConSERT uses 1."""
    tokens: TokenChoice = "all"
    """all: special tokens too, as in ConSERT's code; content: they keep their positions."""


class EmbeddingsOptions(AugmenterOptions):
    """Options of every augmenter of embeddings."""

    at: Literal["input_embeddings", "word_embeddings"] = "input_embeddings"
    """input_embeddings: what enters the first layer, after LayerNorm and dropout (ConSERT);
    word_embeddings: the table's output, before positions are added (MoCoSE's Table 5)."""
    rescale: bool = False
    """Divide what is kept by its share, to keep the expectation; ConSERT does not."""


class TokenCutoffOptions(EmbeddingsOptions):
    """Options of ``token-cutoff``."""

    rate: Rate = 0.15
    """Share of a row's tokens whose embeddings become zero, rounded down."""
    tokens: TokenChoice = "all"
    """all: special tokens included, as in ConSERT's code; content: special tokens stay."""


class FeatureCutoffOptions(EmbeddingsOptions):
    """Options of ``feature-cutoff``."""

    rate: Rate = 0.2
    """Share of the features that become zero for all tokens of a row, rounded down."""


class EmbeddingDropoutOptions(EmbeddingsOptions):
    """Options of ``embedding-dropout``."""

    rate: Rate = 0.2
    """Share of the elements of a row's embeddings that become zero."""
    draw: Literal["each", "count"] = "each"
    """each: every element independently with this probability (paper); count: exactly this share of
    each row, rounded down (code)."""
