"""Options of the parts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from cse_core.options import LossOptions, PoolerOptions, Temperature


class ChunkVectorsOptions(PoolerOptions):
    """Options of ``chunk-vectors``."""

    by: Literal["tokens", "sentences", "separator"] = "tokens"
    """What a chunk is: a number of tokens, a number of sentences, or what separators part."""
    size: Annotated[int, Field(ge=1, le=2**16)] = 128
    """Tokens or sentences of a chunk; the last one of a text may have fewer."""
    separator: str = ""
    """Text between chunks, one token of the vocabulary; with by = separator."""

    @model_validator(mode="after")
    def _separator_where_it_is_used(self) -> ChunkVectorsOptions:
        if bool(self.separator) != (self.by == "separator"):
            raise ValueError("a separator goes with by = separator, and the other way round")
        return self


class MaxSimOptions(LossOptions):
    """Options of ``maxsim``."""

    negatives: Literal["in-batch", "none"] = "in-batch"
    """In-batch negatives only: stores keep no vectors of this kind."""
    tokens: str = "token"
    """Level of the vectors that are compared."""
    temperature: Temperature = 1.0
    """Softmax temperature: scores are divided by it."""
    score: Literal["sum", "mean"] = "sum"
    """Sum or mean over the vectors of a query."""


class InsentOptions(LossOptions):
    """Options of ``insent``."""

    negatives: Literal["none"] = "none"
    """Its negatives are chunks of the batch, those of an equal document too."""
    chunks: str = "chunk"
    """Level of the vectors that are compared with a query."""
    column: str = "chunk"
    """Column with the number of the chunk that answers the query, from 0."""
    temperature: Temperature = 0.05
    """Softmax temperature: similarities are divided by it."""
    directions: Literal["one"] = "one"
    """A chunk does not look for its query."""
    sequence_weight: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Share of the term over the chunks of one document, lambda."""
