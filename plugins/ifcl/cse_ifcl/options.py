"""Options of IFCL's parts."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from cse_core.options import (
    AugmenterOptions,
    Location,
    LossOptions,
    ModelName,
    Options,
    StoreOptions,
    Temperature,
)
from cse_core.schedule import Schedule

Alone = Literal["keep", "zero", "pad"]
"""What a token without a counterpart is fused with."""


def _not_negative(value: Schedule) -> Schedule:
    if value.bounds[0] < 0:
        raise ValueError("must not be negative")
    return value


Weight = Annotated[Schedule, AfterValidator(_not_negative)]
"""Factor of a term of a loss."""
ONE = Schedule("constant", 1.0, 1.0)


class FusionOptions(AugmenterOptions):
    """Options of ``fusion``."""

    epsilon: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Share of the sentence's own embeddings; 1 changes nothing. The paper's value is not known."""
    at: Literal["word_embeddings", "input_embeddings"] = "input_embeddings"
    """word_embeddings: both models' word tables are fused; input_embeddings: the outputs of both
    embedding layers, after position, type and LayerNorm."""
    model: ModelName | None = None
    """Encoder of the other language by name or folder; by default a frozen copy of the run's own
    embeddings."""
    column: str = "fraternal"
    """Column of the sentences in the other language."""
    unmatched: Alone = "keep"
    """Tokens beyond the end of the other sentence. keep: their own embedding; zero: fused with
    nothing; pad: with the other model's padding token."""
    special: Alone = "keep"
    """The same choice for special and prompt tokens."""
    projection: Literal["none", "random"] = "none"
    """random: embeddings of another dimension go through a fixed random matrix, scaled to the size
    of the run's own; none: they are refused."""


class WordOptions(AugmenterOptions):
    """Options of ``random-deletion``."""

    rate: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Share of a text's units that change: a probability for each in random-deletion; in the others
    a rounded number, at least one."""
    unit: Literal["word", "character"] = "word"
    """What changes: words, or characters, as in Chinese."""


class LexiconOptions(WordOptions):
    """Options of ``synonym`` and ``random-insertion``."""

    lexicon: Location | None = None
    """Table of synonyms with columns word and synonym. synonym requires it; without it
    random-insertion inserts the text's own words."""


class HippocampusOptions(StoreOptions):
    """Options of ``hippocampus``."""

    view: str = "anchor"
    """View whose vectors it keeps."""
    batches: Annotated[int, Field(ge=1, le=4096)] = 4
    """Earlier batches that it holds (the paper's k, whose value is not published)."""
    forgetting: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Weight that a batch loses at each step (the paper's lambda, whose value is not published);
    batches * forgetting must be below 1."""

    @model_validator(mode="after")
    def _weights_stay_positive(self) -> Self:
        if self.batches * self.forgetting >= 1:
            raise ValueError(
                f"batches * forgetting must be below 1, or the oldest batch has no weight left: "
                f"{self.batches} * {self.forgetting:g} is {self.batches * self.forgetting:g}"
            )
        return self


class TwinsOptions(LossOptions):
    """Options of ``twins``."""

    target: str = "identical"
    """View of the identical twins."""
    twin: str = "positive"
    """View of the fraternal twins."""
    temperature: Temperature = 0.05
    """Similarities of both contrastive terms are divided by it. The paper's value is not known."""
    identical: Weight = ONE
    """Factor of the term that pulls identical twins together, against all negatives."""
    fraternal: Weight = ONE
    """Factor of the term that pulls fraternal twins together, against only the batch."""
    margin: Weight = ONE
    """Factor of the term that keeps the innate distance between the twins."""


class MutualInformationOptions(Options):
    """Options of ``mutual-information``."""

    temperature: Temperature = 0.05
    """Cosines are divided by it."""
    rows: Annotated[int, Field(ge=2)] = 512
    """N: the last training rows of the run, over which the twins are estimated."""
    identical: str = "identical"
    """View of the identical twins."""
    fraternal: str = "positive"
    """View of the fraternal twins."""
    gold: float | None = None
    """Lowest score of the pairs in the task; by default the highest of the scale."""
