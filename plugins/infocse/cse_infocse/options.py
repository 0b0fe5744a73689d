"""Options of InfoCSE's parts."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from cse_core.options import (
    AugmenterOptions,
    Location,
    MinerOptions,
    ModelName,
    Patience,
    PoolerOptions,
)

Count = Annotated[int, Field(ge=1)]


class PairOptions(MinerOptions):
    """Options of every miner that takes pairs from documents."""

    pairs_per_document: Count | None = 100
    """Most pairs per document, spread evenly over all it has; none: no limit."""
    pairs: Count | None = None
    """Most pairs per round, drawn from all; none: no limit."""


class ClusterOptions(PairOptions):
    """Options of every miner of clusters by the encoder itself."""

    annotator: ModelName = "self"
    """Model that clusters for the first round, or self; later rounds use the encoder itself."""
    annotator_pool: Literal["mean", "cls"] | None = None
    """Row pooler of a named annotator; by default its own."""
    rounds: Count | None = None
    """Most rounds; none: until the dev score stops improving, or 2 without dev sets."""
    round_patience: Count = 1
    """Stop mining after N rounds without a better dev score."""
    shard: Count = 20_000
    """Sentences encoded and clustered at once; a document is never split."""


class IdcOptions(ClusterOptions):
    """Options of ``idc``."""

    neighbours: Count = 1
    """K: each sentence keeps an edge to the K nearest ones of its document."""
    similarity: Literal["dot", "cosine"] = "dot"
    """Weight of an edge: the inner product (the paper), or that of unit vectors."""


class IdcKmeansOptions(ClusterOptions):
    """Options of ``idc-kmeans``."""

    clusters: Annotated[int, Field(ge=2)] = 10
    """Clusters over all documents."""
    sample: Annotated[int, Field(ge=2)] = 20_000
    """Sentences, drawn from all, to which the centres are fitted."""
    batch_size: Count = 1024
    """Sentences of a batch of the mini-batch k-means."""


class NeighbourOptions(PairOptions):
    """Options of ``neighbour``."""

    distance: Annotated[int, Field(ge=1)] = 4
    """Largest distance between the two sentences of a pair, in sentences."""


class ContextOptions(PairOptions):
    """Options of ``inverse-cloze`` and ``preceding-context``."""

    context: Literal["joined", "mean"] = "joined"
    """joined: one text, cut at model.max_length; mean: of the sentences' vectors, which takes the
    slice pooler ``sentences``."""
    sentences: Count | None = 4
    """Most sentences in a context, the nearest ones; none: all, the rest of the document or all
    that precedes."""


class InverseClozeOptions(ContextOptions):
    """Options of ``inverse-cloze``."""

    keep: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Share of contexts that keep the sentence itself."""


class SpanOptions(PairOptions):
    """Options of ``span``."""

    anchors: Count = 2
    """Anchor spans of a document."""
    positives: Count = 2
    """Positive spans of an anchor."""
    combine: Literal["mean", "separate"] = "separate"
    """mean: the positive is the mean of the spans' vectors (DeCLUTR), which takes the slice pooler
    ``sentences``; separate: each span makes a pair."""
    shortest: Count = 4
    """Fewest words in a span."""
    longest: Count = 24
    """Most words in a span; DeCLUTR's have 32 to 512."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.shortest > self.longest:
            raise ValueError(
                f"shortest must not be above longest: {self.shortest} and {self.longest}"
            )
        return self


class LabelsOptions(MinerOptions):
    """Options of ``labels``."""

    file: Location | None = None
    """Labelled pairs: articles with titles, or a table with text and positive; by default the
    training data's own titles and documents."""
    limit: Annotated[int, Field(ge=2)] | None = None
    """Use only N pairs, drawn by the run's seed."""
    document: Literal["mean", "joined"] = "mean"
    """A document: mean of its sentences' vectors, which takes the slice pooler ``sentences``;
    joined: one text, cut at model.max_length."""
    batch_size: Annotated[int, Field(ge=2)] = 64
    """Pairs of a batch."""
    chunk_size: Count | None = 8
    """Pairs encoded at once, by gradient caching: documents are long; none is the whole batch."""
    epochs: Annotated[float, Field(gt=0)] = 20
    """Most passes over the pairs."""
    patience: Patience = "2 epochs"
    """End the round after this long without a better dev score, with its unit."""
    lr: Annotated[float, Field(gt=0, le=1)] | None = None
    """Peak learning rate; by default train.lr."""


class IdcLabelsOptions(LabelsOptions, IdcOptions):
    """Options of ``idc-labels``: those of ``labels`` and ``idc``.

    ``rounds`` and ``round_patience`` count turns: each is a stage of clustering and then a round of
    labels, whose dev scores are compared.
    """

    idc_rounds: Count | None = None
    """Most rounds in a stage of clustering; none: until the dev score stops improving in the stage,
    or 2 without dev sets."""
    idc_patience: Count = 1
    """End a stage of clustering after N rounds without a better dev score."""
    idc_after: bool = True
    """Add a stage of clustering after the last round of labels."""


class SentencesOptions(PoolerOptions):
    """Options of ``sentences``."""

    length: Count = 32
    """Most tokens in a sentence, with special tokens; longer ones are cut."""


class SpanMaskOptions(AugmenterOptions):
    """Options of ``span-mask``."""

    characters: Count = 5
    """Characters in a row that the mask token replaces."""
    shortest: Count = 30
    """Texts with fewer characters are not changed."""
