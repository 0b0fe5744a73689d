"""Positives by k-means over the sentences of all documents."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from sklearn.cluster import MiniBatchKMeans
from torch import Tensor

from cse_core.parts import RoundContext
from cse_infocse.clusters import Clusters
from cse_infocse.documents import Documents, Ints
from cse_infocse.graph import canonical
from cse_infocse.options import IdcKmeansOptions


class IdcKmeans(Clusters):
    """Pairs of sentences in one of a few clusters over all documents, mined in each round.

    InfoCSE, Table 3, the variant that is worse than one graph a document: 10 clusters. How it makes
    pairs the paper does not say: here sentences of one document in one cluster are pairs. Centres
    are fitted to a sample, so that memory does not grow with the corpus.
    """

    options: IdcKmeansOptions

    def clustering(
        self, ctx: RoundContext, documents: Documents, vectors: Callable[[Ints], Tensor]
    ) -> Callable[[Tensor, Documents], Ints]:
        """Fit the centres to a sample; sentences of one document with one centre are a cluster."""
        options, rows = self.options, documents.rows
        drawing = ctx.generator(f"{self.name} sample")
        drawn = torch.randperm(len(rows), generator=drawing)[: options.sample].numpy()
        seed = int(torch.randint(2**31, (1,), generator=drawing))
        sample = vectors(rows[np.sort(drawn)])
        means = MiniBatchKMeans(
            n_clusters=min(options.clusters, max(1, len(sample) // 4)),
            batch_size=options.batch_size,
            n_init=3,
            random_state=seed,
        ).fit(sample.numpy())

        def clusters(vectors: Tensor, shard: Documents) -> Ints:
            label = means.predict(vectors.numpy()).astype(np.int64)
            return canonical(shard.document * options.clusters + label)

        return clusters
