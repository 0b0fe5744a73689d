"""Positives by clustering the sentences of each document (IDC)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cse_core.protocols import PositiveMiner, RoundContext, Setup
from cse_core.types import Round
from cse_infocse.annotator import SELF, Encode, checked, named_annotator
from cse_infocse.documents import documents_of
from cse_infocse.graph import components, nearest_edges
from cse_infocse.options import IdcOptions
from cse_infocse.pairs import PairCollector, cluster_pairs, uniform
from cse_infocse.stopping import enough


class Idc(PositiveMiner):
    """Pairs of sentences in one component of their document's graph, mined anew each round.

    InfoCSE, Section 3: an edge joins two sentences if one is among the K of the largest inner
    product with the other; clusters are the connected components; every unordered pair in one is a
    positive pair, used once. Rounds end when the dev score stops growing.

    Of equally near sentences the first is taken; a sentence that a document has twice counts once;
    documents of many pairs are capped (``pairs_per_document``). These are ours: the paper says
    nothing about them. A shard's vectors are all that is held; one shard after the other is
    encoded, clustered and forgotten.

    Raises:
        CseError: If ``annotator`` is no model.
    """

    options: IdcOptions

    def __init__(self, options: IdcOptions, setup: Setup) -> None:
        self.options = options
        self.name = setup.name
        self.where = f"positives.{setup.name}"
        self.mined = 0
        self.before = 0
        self._annotator: Encode | None = None
        if options.annotator != SELF:
            self._annotator = named_annotator(options.annotator, options.annotator_pool, setup)

    def next_round(self, ctx: RoundContext) -> Round | None:
        """Return the next round's pairs as corpus rows, with each pair's cluster, or None."""
        if not self.mined:
            self.before = len(ctx.scores)
        own = ctx.scores[self.before :]
        if enough(own, self.options.rounds, self.options.round_patience):
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
        """Return the pairs of all documents, shard by shard."""
        options = self.options
        documents = documents_of(ctx.corpus, self.where)
        places = uniform(ctx.generator(f"{self.name} documents"))
        found = PairCollector(options.pairs, uniform(ctx.generator(f"{self.name} pairs")))
        texts = ctx.corpus.column("text")
        done = 0
        for shard in documents.shards(options.shard):
            vectors = checked(encode(texts.take(shard.rows)), self.where)
            edges = nearest_edges(vectors, shard, options.neighbours, options.similarity)
            cluster = components(*edges, len(shard.rows))
            one, two = cluster_pairs(cluster, shard, options.pairs_per_document, places)
            rows = shard.rows
            found.add(rows[one], rows[two], rows[cluster[one]])
            done += len(rows)
            ctx.progress(done, len(documents.rows), f"sentences clustered for round {ctx.round}")
        return found

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return how many rounds it asked for, and how many there were before."""
        return {"mined": self.mined, "before": self.before}

    def load_state_dict(self, state: Mapping[str, Any], *args: Any, **kwargs: Any) -> None:
        """Restore what ``state_dict`` returned."""
        self.mined, self.before = state["mined"], state["before"]
