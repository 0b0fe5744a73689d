"""Hard negatives that may be false, by a frozen model."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from cse_core.functional import listed, similarity
from cse_core.parts import NegativeStore
from cse_core.types import SENTENCE, Batch, Negatives, StepContext
from cse_lists.options import DecayOptions

EQUAL = 1e-4
"""Logits this near are one number: of a model beside its own start, rounding would decide."""


class GaussianDecay(NegativeStore):
    """Adds ``-s exp(-(s - b)^2 / (2 w^2))`` to a text's logit s with its hard negative, if s <= b.

    GCSE (Lai et al., 2025), as in the authors' code: b is the logit of a frozen model. A text as
    similar as the frozen model has it gets the logit 0, and regains its own as the model moves it
    away. The added number has no gradient.
    """

    options: DecayOptions

    def weigh(self, negatives: Negatives, batch: Batch, ctx: StepContext) -> Negatives:
        """Change the log-weights where an anchor meets its own hard negatives."""
        options, view = self.options, self.options.view
        spans = [block for name, block in negatives.spans() if name == view]
        if not spans or batch.view != "anchor":
            return negatives
        (block,) = spans
        frozen = [ctx.vectors(name, options.branch)[SENTENCE] for name in ("anchor", view)]
        zero = torch.zeros_like(batch.slot)
        anchors = listed(frozen[0], batch.owner, zero, 1).vectors[:, 0]
        owner = negatives.owner[block]
        others = listed(frozen[1], owner, negatives.slot[block], 1).vectors[:, 0]
        base = similarity(anchors, others) / options.temperature
        logits = similarity(batch.anchors, negatives.vectors[block]).detach() / options.temperature
        added = decay(logits, base.to(logits.dtype), options.width)
        here = owner.unsqueeze(0) == batch.owner.unsqueeze(1)
        log_weights = negatives.log_weights.clone()
        log_weights[:, block] += added.masked_fill(~here, 0.0)
        seen = here & ~negatives.mask[:, block]
        share = (seen & (added != 0)).sum() / seen.sum().clamp_min(1)
        ctx.log(f"{self.name}.decayed", share)
        return replace(negatives, log_weights=log_weights)


def decay(logits: Tensor, base: Tensor, width: float) -> Tensor:
    """Return ``[A, N]`` what is added to logits, by those of the frozen model."""
    apart = logits - base
    bell = (-apart.square() / (2 * width**2)).exp()
    return torch.where(apart > EQUAL, 0.0, -logits * bell)
