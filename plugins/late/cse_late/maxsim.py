"""Late interaction: every vector of a query looks for the nearest one of a document."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from cse_core.functional import (
    candidate_texts,
    log_sum_exp,
    mean_over_positives,
    positive_texts,
    reduce_terms,
    text_keys,
    unit,
)
from cse_core.parts import Loss
from cse_core.types import Batch, Embeddings, LossOutput, Negatives, Positives, StepContext
from cse_late.options import MaxSimOptions

PAIRS = 2**24
"""Pairs of a query's and a document's vector that are compared at once."""


def maxsim(
    queries: Tensor, query: Tensor, documents: Tensor, document: Tensor, counts: tuple[int, int]
) -> Tensor:
    """Return ``[Q, N]`` sums over a query's vectors of their largest product with a document's.

    A document without vectors scores 0. Many pairs are computed some queries at a time, and again
    in the backward pass.

    Args:
        queries: ``[V, D]`` vectors of Q queries, those of each end to end.
        query: ``[V]`` the query of each, ascending.
        documents: ``[W, D]`` vectors of N documents.
        document: ``[W]`` the document of each.
        counts: Q and N.
    """

    def scores(part: Tensor, of: Tensor, documents: Tensor) -> Tensor:
        near = part @ documents.T
        largest = near.new_full((len(part), counts[1]), -torch.inf)
        places = document.expand(len(part), -1)
        largest = largest.scatter_reduce(1, places, near, "amax", include_self=False)
        largest = largest.masked_fill(largest == -torch.inf, 0)
        return largest.new_zeros(counts).index_add(0, of, largest)

    size = max(PAIRS // max(len(documents), 1), 1)
    if len(queries) <= size:
        return scores(queries, query, documents)
    parts = zip(queries.split(size), query.split(size), strict=True)
    return torch.stack(
        [checkpoint(scores, part, of, documents, use_reentrant=False) for part, of in parts]
    ).sum(0)


class MaxSim(Loss):
    """Cross entropy of a query's own document among others, by late interaction.

    ``s(q, d) = sum_i max_j cos(q_i, d_j)`` over the token vectors (ColBERT, Eq. 3), softmax over
    the documents of the batch as in PyLate's ``Contrastive``; of several positives the mean.
    ColBERT's own code trains on triples:
    ``--loss.maxsim.in_batch`` has no such choice, a column ``negative`` gives the third text.
    """

    options: MaxSimOptions

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the loss of ``batch.anchors``, whose vectors count at another level."""
        options = self.options
        target, wanted = positive_texts(batch, targets, options.target)
        queries = batch.views[batch.view][options.tokens]
        asked = text_keys(batch.owner, batch.slot)
        scores: dict[str, tuple[Tensor, Tensor]] = {}

        def logits(view: str, keys: Tensor) -> Tensor:
            """Return ``[A, n]`` of texts by ``[n]`` keys, or by those of each query, ``[A, n]``."""
            if view not in scores:
                scores[view] = self._scores(queries, asked, batch.views[view][options.tokens])
            known, values = scores[view]
            place = torch.searchsorted(known, keys).clamp_max(len(known) - 1)  # gaps have weight 0
            return values.gather(1, place) if place.dim() > 1 else values[:, place]

        positive = logits(target, wanted)
        others = [logits(view, keys) for view, keys in candidate_texts(batch, negatives, target)]
        negative = torch.cat(others, dim=1) if others else positive[:, :0]
        negative = (negative + negatives.log_weights).masked_fill(negatives.mask, -torch.inf)
        losses = torch.logaddexp(positive, log_sum_exp(negative).unsqueeze(1)) - positive
        terms = mean_over_positives(losses, targets)
        return LossOutput(reduce_terms(terms, targets, options.reduction))

    def _scores(
        self, queries: Embeddings, asked: Tensor, texts: Embeddings
    ) -> tuple[Tensor, Tensor]:
        """Return the keys of the texts, ascending, and ``[A, texts]`` logits of the queries."""
        wanted, known = (text_keys(rows.owner, rows.slot) for rows in (queries, texts))
        inside = torch.isin(wanted, asked)
        order, known_order = torch.sort(asked), known.sort(stable=True)
        keys, document = torch.unique_consecutive(known_order.values, return_inverse=True)
        kept = inside.nonzero().squeeze(1)
        query = order.indices[torch.searchsorted(order.values, wanted[kept])]
        left, right = queries.vectors[kept], texts.vectors[known_order.indices]
        if self.options.similarity == "cosine":
            left, right = unit(left), unit(right)
        made = maxsim(left, query, right, document, (len(asked), len(keys)))
        if self.options.score == "mean":
            counts = torch.bincount(query, minlength=len(asked)).clamp_min(1)
            made = made / counts.unsqueeze(1)
        return keys, made / self.options.temperature
