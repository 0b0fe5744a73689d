"""Positives by k-means over the sentences of all documents."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.cluster import MiniBatchKMeans

from cse_core.parts import RoundContext
from cse_infocse.clusters import Clusters, Encode, checked
from cse_infocse.documents import Ints, documents_of
from cse_infocse.graph import canonical
from cse_infocse.options import IdcKmeansOptions
from cse_infocse.pairs import Draw, PairCollector, cluster_pairs, uniform


class IdcKmeans(Clusters):
    """Pairs of sentences in one of a few clusters over all documents, mined in each round.

    InfoCSE, Table 3, the variant that is worse than one graph a document: 10 clusters. How it makes
    pairs the paper does not say: by default sentences of one document in one cluster are pairs;
    ``within = "corpus"`` pairs each sentence with a drawn one of its cluster, whatever its
    document. Centres are fitted to a sample, so that memory does not grow with the corpus.
    """

    options: IdcKmeansOptions

    def pairs(self, ctx: RoundContext, encode: Encode) -> PairCollector:
        """Return the pairs of all documents, shard by shard."""
        options = self.options
        documents = documents_of(ctx.corpus, self.where)
        places = uniform(ctx.generator(f"{self.name} documents"))
        pairs = PairCollector(options.pairs, uniform(ctx.generator(f"{self.name} pairs")))
        texts = ctx.corpus.column("text")
        drawing = ctx.generator(f"{self.name} sample")
        drawn = torch.randperm(len(documents.rows), generator=drawing)[: options.sample].numpy()
        seed = int(torch.randint(2**31, (1,), generator=drawing))
        sample = checked(encode(texts.take(documents.rows[np.sort(drawn)])), self.where)
        means = MiniBatchKMeans(
            n_clusters=min(options.clusters, max(1, len(sample) // 4)),
            batch_size=options.batch_size,
            n_init=3,
            random_state=seed,
        ).fit(sample.numpy())
        labels: list[Ints] = []
        done = 0
        for shard in documents.shards(options.shard):
            vectors = checked(encode(texts.take(shard.rows)), self.where)
            label = means.predict(vectors.numpy()).astype(np.int64)
            if options.within == "document":
                cluster = canonical(shard.document * options.clusters + label)
                one, two = cluster_pairs(cluster, shard, options.pairs_per_document, places)
                rows = shard.rows
                pairs.add(rows[one], rows[two], rows[cluster[one]])
            labels.append(label)
            done += len(label)
            ctx.progress(done, len(documents.rows), f"sentences clustered for round {ctx.round}")
        if options.within == "corpus":
            pairs.add(*_partners(np.concatenate(labels), documents.rows, places))
        return pairs


def _partners(label: Ints, rows: Ints, draw: Draw) -> tuple[Ints, Ints, Ints]:
    """Pair each sentence with one drawn from the others of its cluster; name the cluster too."""
    order = np.argsort(label, kind="stable")
    sizes = np.bincount(label)
    begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    labels = label[order]
    place = np.arange(len(order)) - begins[labels]
    others = sizes[labels] - 1
    away = 1 + np.floor(draw(len(order)) * others).astype(np.int64)
    partner = order[begins[labels] + (place + np.minimum(away, others)) % sizes[labels]]
    real = others > 0
    return rows[order][real], rows[partner][real], rows[order[begins[labels]]][real]
