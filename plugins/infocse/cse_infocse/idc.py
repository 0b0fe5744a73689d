"""Positives by clustering the sentences of each document (IDC)."""

from __future__ import annotations

from cse_core.parts import RoundContext
from cse_infocse.annotator import Encode, checked
from cse_infocse.clusters import Clusters
from cse_infocse.documents import documents_of
from cse_infocse.graph import components, nearest_edges
from cse_infocse.options import IdcOptions
from cse_infocse.pairs import PairCollector, cluster_pairs, uniform


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
