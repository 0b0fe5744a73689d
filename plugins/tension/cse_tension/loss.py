"""The losses of Contrastive Tension: of single pairs, and of the whole batch."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from cse_core.functional import (
    infonce_terms,
    mean_over_positives,
    paired_similarity,
    reduce_terms,
    similarity,
    unit,
)
from cse_core.parts import Loss, Setup
from cse_core.types import Batch, LossOutput, Negatives, Positives, StepContext
from cse_tension.options import LearnedInfonceOptions, TensionOptions


class Tension(Loss):
    """Binary cross entropy of ``f1(s1) . f2(s2)``: are they one text (Carlsson et al., 2021)?

    An anchor's different texts are the negatives that follow it in the batch, the first K that are
    not masked. A batch of B texts has B (K + 1) pairs, of which ``published`` takes B: like the
    authors' code it compares each vector of a model once.
    """

    options: TensionOptions

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the mean (or sum) over anchors, of which each is the mean over its pairs."""
        kind, many = self.options.similarity, self.options.different
        same = mean_over_positives(
            softplus(-paired_similarity(batch.anchors, targets.vectors, kind)), targets
        )
        has_same = torch.ones_like(same)
        if targets.weights is not None:
            has_same = (targets.weights.sum(dim=1) > 0).to(same.dtype)
        if self.options.pairs == "published":
            first = batch.owner % (many + 1) == 0
            has_same = has_same * first
            counts = torch.where(first, 0, 1)
        else:
            counts = torch.full_like(batch.owner, many)
        logits = similarity(batch.anchors, negatives.vectors, kind) + negatives.log_weights
        taken = first_that_follow(negatives, batch.owner, counts)
        terms = softplus(logits.masked_fill(~taken, -torch.inf)).sum(dim=1)
        pairs = (has_same + taken.sum(dim=1)).clamp_min(1)
        return LossOutput(
            reduce_terms((same * has_same + terms) / pairs, targets, self.options.reduction)
        )


def first_that_follow(negatives: Negatives, owner: Tensor, counts: Tensor) -> Tensor:
    """Return ``[A, N]`` which columns each anchor takes: the first so many behind its own place.

    What is masked, or of weight zero, is passed over; behind the last column comes the first.
    """
    usable = ~negatives.mask & negatives.log_weights.isfinite()
    number = torch.arange(len(negatives), device=owner.device)
    start = (owner + 1).clamp_max(len(negatives)).unsqueeze(1)
    behind = number >= start
    before = (usable & ~behind).cumsum(dim=1)
    after = (usable & behind).cumsum(dim=1)
    rank = torch.where(behind, after, before + after[:, -1:])
    return usable & (rank <= counts.unsqueeze(1))


class LearnedInfonce(nn.Module, Loss):
    """InfoNCE whose temperature is learned, as the logarithm of its inverse.

    With both directions it is the in-batch loss that sentence-transformers has for CT.
    """

    def __init__(self, options: LearnedInfonceOptions, setup: Setup) -> None:
        super().__init__()
        self.options, self.name = options, setup.name
        self.log_scale = nn.Parameter(torch.tensor(-math.log(options.start)))

    def forward(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the mean (or sum) over the anchors that have a positive and a negative."""
        anchors = batch.anchors
        if self.options.similarity == "cosine":
            anchors = unit(anchors)
            targets = Positives(unit(targets.vectors), targets.weights)
            negatives = replace(negatives, vectors=unit(negatives.vectors))
        scale = self.log_scale.exp()
        terms = infonce_terms(anchors * scale, targets, negatives, temperature=1.0, kind="dot")
        value = reduce_terms(terms, targets, self.options.reduction)
        return LossOutput(value, {"temperature": 1 / scale.detach()})
