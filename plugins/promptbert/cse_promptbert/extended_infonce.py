"""CoT-BERT's extension of InfoNCE."""

from __future__ import annotations

import torch

from cse_core.functional import mean_over_positives, paired_similarity, reduce_terms, similarity
from cse_core.parts import Loss
from cse_core.types import Batch, LossOutput, Negatives, Positives, StepContext
from cse_promptbert.options import ExtendedInfonceOptions


class ExtendedInfonce(Loss):
    """``-log a(h, h+) / sum over n of [a(h, n) + a(h+, h-)]``, a = exp(s/t), h- a hard negative.

    CoT-BERT (Zhang et al., 2023), Eq. 3: as InfoNCE, where the denominator also has each hard
    negative h- compared with the positive. Hard negatives are those of views with role negative,
    those that stores hold of such views included; their masks and weights hold for both terms.
    Without any it is InfoNCE.
    """

    options: ExtendedInfonceOptions

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the mean (or sum) over the anchors that have a positive."""
        options, roles, views = self.options, batch.roles, negatives.views
        kind, temperature = options.similarity, options.temperature
        anchors, positives, dimension = targets.vectors.shape
        near = paired_similarity(batch.anchors, targets.vectors, kind) / temperature  # [A, P]
        weights = negatives.log_weights.masked_fill(negatives.mask, -torch.inf)
        away = similarity(batch.anchors, negatives.vectors, kind) / temperature + weights
        logits = [near.unsqueeze(2), away.unsqueeze(1).expand(-1, positives, -1)]
        flat = targets.vectors.reshape(-1, dimension)
        for name, block in negatives.spans():
            if roles.get(views.get(name, "")) == "negative":
                hard = similarity(flat, negatives.vectors[block], kind) / temperature
                hard = hard.view(anchors, positives, -1) + weights[:, block].unsqueeze(1)
                logits.append(hard)
        terms = torch.cat(logits, dim=2).logsumexp(dim=2) - near
        terms = mean_over_positives(terms, targets)
        return LossOutput(reduce_terms(terms, targets, options.reduction))
