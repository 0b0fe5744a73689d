"""The lists of both views of a text, compared."""

from __future__ import annotations

from math import log

import torch

from cse_core.functional import mean_over_positives, reduce_terms, similarity
from cse_core.parts import Loss
from cse_core.types import Batch, LossOutput, Negatives, Positives, StepContext
from cse_rankcse.lists import log_shares, present
from cse_rankcse.options import ConsistencyOptions

PUBLISHED_FLOOR = 1e-7


class RankingConsistency(Loss):
    """``JS(softmax(S_i / t1), softmax(S'_i / t1))``: RankCSE's ranking consistency.

    S_i are the cosines of anchor i with all targets of the batch, S'_i those of its target with all
    anchors. ``published``: the public code raises each share to 1e-7 at least, and the logarithm of
    the mixture too, which makes it constant: what is left is minus the mean of both entropies.
    """

    options: ConsistencyOptions

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the mean (or sum) over the anchors that have a positive."""
        options, count = self.options, targets.vectors.shape[1]
        anchors = batch.anchors.repeat_interleave(count, dim=0)
        logits = similarity(anchors, targets.vectors.flatten(0, 1), options.similarity)
        seen = present(targets).unsqueeze(0).expand_as(logits)
        one, other = (log_shares(rows / options.temperature, seen) for rows in (logits, logits.T))
        middle = torch.logaddexp(one, other) - log(2)
        if options.variant == "published":
            one, other = (side.clamp_min(log(PUBLISHED_FLOOR)) for side in (one, other))
            middle = torch.full_like(middle, PUBLISHED_FLOOR)
        apart = (one.exp() * (one - middle) + other.exp() * (other - middle)) / 2
        terms = apart.masked_fill(~seen, 0.0).sum(dim=1).reshape(-1, count)
        value = reduce_terms(mean_over_positives(terms, targets), targets, options.reduction)
        return LossOutput(value)
