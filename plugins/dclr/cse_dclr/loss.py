"""The loss of DCLR, as the paper writes it and as its code computes it."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_core.functional import (
    Similarity,
    infonce_terms,
    log_sum_exp,
    mean_over_positives,
    paired_similarity,
    reduce_terms,
    similarity,
)
from cse_core.parts import Loss
from cse_core.types import Batch, LossOutput, Negatives, Positives, StepContext
from cse_dclr.options import DclrOptions


class Dclr(Loss):
    """Contrastive loss with weighted negatives (DCLR).

    ``paper``: ``-log( exp(s(h, h+)/t) / (exp(s(h, h+)/t) + sum_n w_n exp(s(h, n)/t)) )``, which is
    InfoNCE: a negative of weight 0 is gone.

    ``published``: the authors' code multiplies the logits, ``p = softmax(w * s/t)``, so a negative
    of weight 0 stays in the denominator as exp(0), and takes the mean over all entries of the
    binary cross entropy of p: ``-log p`` at the positive, ``-log(1 - p)`` at each negative. It is
    about as many times smaller than InfoNCE as there are columns. There log(1 - p) of p = 1 gives
    NaN; here 1 - p of the largest entry is the sum of the others.

    A masked column is in neither. With several positives each competes with the negatives
    alone, and their weighted mean counts.
    """

    options: DclrOptions

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the mean (or sum) over the anchors that have a positive."""
        terms = infonce_terms if self.options.variant == "paper" else published_terms
        losses = terms(
            batch.anchors,
            targets,
            negatives,
            temperature=self.options.temperature,
            kind=self.options.similarity,
        )
        return LossOutput(reduce_terms(losses, targets, self.options.reduction))


def published_terms(
    anchors: Tensor,
    targets: Positives,
    negatives: Negatives,
    *,
    temperature: float,
    kind: Similarity,
) -> Tensor:
    """Return ``[A]`` means over the entries of each anchor of their binary cross entropy.

    Args:
        anchors: ``[A, D]``.
        targets: ``[A, P, D]``.
        negatives: ``[N, D]`` with ``[A, N]`` mask and log-weights.
        temperature: Divides the similarities.
        kind: ``cosine`` or ``dot``.
    """
    positive = paired_similarity(anchors, targets.vectors, kind) / temperature  # [A, P]
    negative = similarity(anchors, negatives.vectors, kind) / temperature  # [A, N]
    weighed = negatives.log_weights.exp() * negative
    mask = negatives.mask
    entries = 1 + (~mask).sum(dim=1)
    losses = torch.stack(
        [_entropies(column, weighed, mask) / entries for column in positive.unbind(dim=1)], dim=1
    )
    return mean_over_positives(losses, targets)


def _entropies(positive: Tensor, negative: Tensor, mask: Tensor) -> Tensor:
    """Return ``[A]`` sums of the binary cross entropy over a positive and its negatives.

    Args:
        positive: ``[A]`` logits.
        negative: ``[A, N]`` logits.
        mask: ``[A, N]``; True is not an entry.
    """
    hidden = torch.cat([mask.new_zeros(len(mask), 1), mask], dim=1)
    logits = torch.cat([positive.unsqueeze(1), negative], dim=1).masked_fill(hidden, -torch.inf)
    total = log_sum_exp(logits)
    largest = torch.zeros_like(hidden).scatter(1, logits.argmax(dim=1, keepdim=True), True)
    # Every entry but the largest has p <= 1/2; what the largest leaves is summed, not subtracted.
    rest = log_sum_exp(logits.masked_fill(largest, -torch.inf)) - total
    shares = (logits - total.unsqueeze(1)).masked_fill(largest, -torch.inf).exp()
    left = torch.where(largest, rest.unsqueeze(1), torch.log1p(-shares))
    absent = hidden.clone()
    absent[:, 0] = True
    return total - positive - left.masked_fill(absent, 0.0).sum(dim=1)
