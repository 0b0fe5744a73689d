"""Positives by clustering: rounds that the encoder itself mines, in each document's graph (IDC)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from cse_core.errors import CseError
from cse_core.parts import PositiveMiner, RoundContext, Setup
from cse_core.types import Round
from cse_infocse.documents import Documents, Ints, documents_of
from cse_infocse.graph import components, nearest_edges
from cse_infocse.options import ClusterOptions, IdcOptions
from cse_infocse.pairs import PairCollector, cluster_pairs, uniform

Encode = Callable[[Sequence[str]], Tensor]
SELF = "self"
UNSEEN_ROUNDS = 2
"""Rounds without a dev set: the paper's second is its best, its third slightly worse."""


def enough(scores: Sequence[float | None], rounds: int | None, patience: int) -> bool:
    """Check whether the rounds so far are enough.

    Args:
        scores: Best dev score of each finished round, None without a dev set.
        rounds: Rounds at most.
        patience: Rounds without a better score after which it is over.
    """
    if rounds is not None and len(scores) >= rounds:
        return True
    known = [score for score in scores if score is not None]
    if len(known) < len(scores):
        return rounds is None and len(scores) >= UNSEEN_ROUNDS
    return bool(known) and len(known) - 1 - known.index(max(known)) >= patience


class Clusters(PositiveMiner):
    """A miner of pairs that share a cluster, mined in each round by the encoder as it is then.

    Rounds end when the dev score stops growing.

    Raises:
        CseError: If ``annotator`` is not a model.
    """

    options: ClusterOptions
    remembers = ("mined", "before")

    def __init__(self, options: ClusterOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.where = f"positives.{setup.name}"
        self.mined = 0
        self.before = 0
        self._annotator: Encode | None = None
        if options.annotator != SELF:
            pool = options.annotator_pool
            model = setup.load_model(options.annotator, pool, option="annotator")
            self._annotator = model.encode

    def next_round(self, ctx: RoundContext) -> Round | None:
        """Return the next round's pairs as corpus rows, with each pair's cluster, or None."""
        if not self.mined:
            self.before = len(ctx.scores)
        scores = ctx.scores[self.before :]
        if enough(scores, self.options.rounds, self.options.round_patience):
            return None
        return self.mine_round(ctx)

    def mine_round(self, ctx: RoundContext) -> Round:
        """Return the pairs that the current model's clusters give (the annotator's at first)."""
        encode = ctx.encode if self.mined or self._annotator is None else self._annotator
        self._annotator = None
        self.mined += 1
        text, positive, cluster = self.pairs(ctx, encode).distinct(ctx.corpus)
        return Round({"text": text, "positive": positive, "cluster": cluster})

    def pairs(self, ctx: RoundContext, encode: Encode) -> PairCollector:
        """Return the pairs of all documents: two sentences and their cluster's lowest, as rows."""
        options = self.options
        documents = documents_of(ctx.corpus, self.where)
        places = uniform(ctx.generator(f"{self.name} documents"))
        pairs = PairCollector(options.pairs, uniform(ctx.generator(f"{self.name} pairs")))
        texts = ctx.corpus.column("text")

        def vectors(rows: Ints) -> Tensor:
            return checked(encode(texts.take(rows)), self.where)

        clusters = self.clustering(ctx, documents, vectors)
        done = 0
        for shard in documents.shards(options.shard):
            cluster, rows = clusters(vectors(shard.rows), shard), shard.rows
            one, two = cluster_pairs(cluster, shard, options.pairs_per_document, places)
            pairs.add(rows[one], rows[two], rows[cluster[one]])
            done += len(rows)
            ctx.progress(done, len(documents.rows), f"sentences clustered for round {ctx.round}")
        return pairs

    @abstractmethod
    def clustering(
        self, ctx: RoundContext, documents: Documents, vectors: Callable[[Ints], Tensor]
    ) -> Callable[[Tensor, Documents], Ints]:
        """Return what finds the lowest sentence of each one's cluster ``[S]`` in a shard.

        It is given the shard's vectors ``[S, D]``; ``vectors`` encodes corpus rows.
        """


class Idc(Clusters):
    """Pairs of sentences in one component of their document's graph, mined in each round.

    InfoCSE, Section 3: an edge joins two sentences if one is among the K of the largest inner
    product with the other; clusters are the connected components; every unordered pair in one is a
    positive pair, used once. Rounds end when the dev score stops growing. The earlier sentence of a
    pair is the anchor; the paper's pairs have no order.

    Of equally near sentences the first is taken; a sentence that a document has twice counts once;
    documents of many pairs are capped (``pairs_per_document``). These are ours: the paper says
    nothing about them. A shard's vectors are all that is held; one shard after the other is
    encoded, clustered and forgotten.
    """

    options: IdcOptions

    def clustering(
        self, ctx: RoundContext, documents: Documents, vectors: Callable[[Ints], Tensor]
    ) -> Callable[[Tensor, Documents], Ints]:
        """Return the components of the graph of nearest sentences."""
        neighbours, similarity = self.options.neighbours, self.options.similarity
        return lambda vectors, shard: components(
            *nearest_edges(vectors, shard, neighbours, similarity), len(shard.rows)
        )


def checked(vectors: Tensor, where: str) -> Tensor:
    """Return the vectors.

    Raises:
        CseError: If one is not finite: no sentence has a nearest one then.
    """
    if not bool(torch.isfinite(vectors).all()):
        raise CseError(
            "the encoder returns vectors that are not finite",
            where=where,
            hint="train with a lower train.lr, or in fp32",
        )
    return vectors
