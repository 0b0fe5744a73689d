"""Options of InfoCSE's parts."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from cse_core.options import AugmenterOptions, MinerOptions, Patience, PoolerOptions

LEVEL = "slice"
"""The level of the sentences that a document is cut into."""
Count = Annotated[int, Field(ge=1)]


class PairOptions(MinerOptions):
    """Options of every miner that takes pairs from documents."""

    pairs_per_document: Count | None = 100
    """Pairs of a document at most, spread evenly over all it has; none is no limit."""
    pairs: Count | None = None
    """Pairs of a round at most, drawn from all; none is no limit."""


class ClusterOptions(PairOptions):
    """Options of every miner of clusters by the encoder itself."""

    annotator: str = "self"
    """Who clusters for the first round: self, or a model's name; later rounds are the encoder's."""
    annotator_pool: Literal["mean", "cls"] = "mean"
    """Row pooler of a named annotator."""
    rounds: Count | None = None
    """Most rounds; none: until the dev score stops improving, or 2 without dev sets."""
    round_patience: Count = 1
    """Rounds without a better dev score after which no more are mined."""
    shard: Count = 20_000
    """Sentences encoded and clustered at once; a document is never split."""


class IdcOptions(ClusterOptions):
    """Options of ``idc``."""

    neighbours: Count = 1
    """K: a sentence keeps an edge to so many nearest ones of its document."""
    similarity: Literal["dot", "cosine"] = "dot"
    """Weight of an edge: the inner product (the paper), or that of unit vectors."""


class IdcKmeansOptions(ClusterOptions):
    """Options of ``idc-kmeans``."""

    clusters: Annotated[int, Field(ge=2)] = 10
    """Clusters over all documents."""
    sample: Annotated[int, Field(ge=2)] = 20_000
    """Sentences, drawn from all, that the centres are fitted to."""
    batch_size: Count = 1024
    """Sentences of a batch of the mini-batch k-means."""
    within: Literal["document", "corpus"] = "document"
    """Pairs of one cluster: of the same document, or each sentence with one of any document."""


class NeighbourOptions(PairOptions):
    """Options of ``neighbour``."""

    distance: Annotated[int, Field(ge=1)] = 4
    """How many sentences apart the two of a pair may be."""


class ContextOptions(PairOptions):
    """Options of ``inverse-cloze`` and ``preceding-context``."""

    context: Literal["joined", "mean"] = "joined"
    """joined: one text, cut at model.max_length; mean: of the sentences' vectors, which takes the
    slice pooler ``sentences``."""
    sentences: Count | None = 4
    """Sentences of a context at most, the nearest ones; none is all: the rest of the document, or
    all that precedes."""


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
    """Words of a span at least."""
    longest: Count = 24
    """Words of a span at most; DeCLUTR's are 32 to 512."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.shortest > self.longest:
            raise ValueError(
                f"shortest must not be above longest: {self.shortest} and {self.longest}"
            )
        return self


class LabelsOptions(MinerOptions):
    """Options of ``labels``."""

    file: str | None = None
    """Labelled pairs: articles with titles, or a table with text and positive; by default the
    training data's own titles and documents."""
    limit: Annotated[int, Field(ge=2)] | None = None
    """Use only so many pairs, drawn by the run's seed."""
    document: Literal["mean", "joined"] = "mean"
    """A document: mean of its sentences' vectors, which takes the slice pooler ``sentences``;
    joined: one text, cut at model.max_length."""
    batch_size: Annotated[int, Field(ge=2)] = 64
    """Pairs of a batch."""
    chunk_size: Count | None = 8
    """Pairs encoded at once, by gradient caching: documents are long; none is the whole batch."""
    epochs: Annotated[float, Field(gt=0)] = 20
    """Passes over the pairs at most."""
    patience: Patience = "2 epochs"
    """Without a better dev score after which the round ends, with its unit."""
    lr: Annotated[float, Field(gt=0, le=1)] | None = None
    """Peak learning rate; by default train.lr."""


class IdcLabelsOptions(LabelsOptions, IdcOptions):
    """Options of ``idc-labels``: those of ``labels`` and ``idc``.

    ``rounds`` and ``round_patience`` count turns: each is a stage of clustering and then a round of
    labels, whose dev scores are compared.
    """

    idc_rounds: Count | None = None
    """Rounds of a stage of clustering at most; none goes on until the dev score stops improving in
    the stage, and without dev sets is 2."""
    idc_patience: Count = 1
    """Rounds without a better dev score in a stage of clustering after which it ends."""
    idc_after: bool = True
    """Whether another stage of clustering follows the last round of labels."""


class SentencesOptions(PoolerOptions):
    """Options of ``sentences``."""

    length: Count = 32
    """Tokens of a sentence, special tokens counted; what is longer is cut."""


class SpanMaskOptions(AugmenterOptions):
    """Options of ``span-mask``."""

    characters: Count = 5
    """Characters in a row that the mask token replaces."""
    shortest: Count = 30
    """Texts of fewer characters stay as they are."""
