"""The contrastive loss with an additive angular margin."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import softplus

from cse_arcloss.options import ArcOptions
from cse_core.functional import log_sum_exp, paired_similarity, reduce_terms, similarity
from cse_core.parts import Loss
from cse_core.types import Batch, LossOutput, Negatives, Positives, StepContext

SMALLEST = 1e-7
"""Least square of a sine: the square root has no finite gradient at zero."""


def with_margin(cosines: Tensor, margin: float) -> Tensor:
    """Return ``cos(theta + margin)`` of the cosines of angles theta, any shape."""
    sines = (1 - cosines.square()).clamp_min(SMALLEST).sqrt()
    return cosines * math.cos(margin) - sines * math.sin(margin)


class Arc(Loss):
    """ArcCon, Eq. 4 of the paper, the weighted mean over an anchor's positives.

    ``-log e^(cos(theta+m)/t) / (e^(cos(theta+m)/t) + sum_n w_n e^(cos(theta_n)/t))``; an anchor
    without a positive or without a negative has loss zero. The paper's triplet loss on masked
    sentences is not here.
    """

    options: ArcOptions

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the mean (or sum) over the anchors that have a positive."""
        options = self.options
        cosines = paired_similarity(batch.anchors, targets.vectors)  # [A, P]
        pull = with_margin(cosines, options.radians) / options.temperature
        push = similarity(batch.anchors, negatives.vectors) / options.temperature  # [A, N]
        push = (push + negatives.log_weights).masked_fill(negatives.mask, -torch.inf)
        values = softplus(log_sum_exp(push).unsqueeze(1) - pull, threshold=40)  # [A, P]
        weights = torch.ones_like(pull) if targets.weights is None else targets.weights
        weights = weights / weights.sum(dim=1, keepdim=True).clamp_min(1e-9)
        terms = (weights * values).sum(dim=1)
        return LossOutput(reduce_terms(terms, targets, options.reduction))
