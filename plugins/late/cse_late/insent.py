"""InSeNT: which chunk of a document answers a query, among its chunks and those of others."""

from __future__ import annotations

import torch

from cse_core.functional import log_sum_exp, similarity
from cse_core.parts import Loss
from cse_core.types import Batch, LossOutput, Negatives, Positives, StepContext
from cse_late.options import InsentOptions


class Insent(Loss):
    """Two cross entropies of a query's chunk, weighted (Conti et al. 2025, Section 4).

    One is over the chunks of its own document, the other over it and the chunks of other documents.
    As in the authors' code (``weighted``) both are means over documents of equal weight; a row has
    one query, so that these are means over rows. A row whose document has no chunk of its number,
    such as one that was cut, does not count; the log has their share, ``missing``.
    """

    options: InsentOptions

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the loss of queries ``batch.anchors`` and the chunks of their documents."""
        options = self.options
        chunks = batch.views[options.target][options.chunks]
        gold = ctx.values(options.column).to(batch.owner.device)[batch.owner]
        own = batch.owner.unsqueeze(1) == chunks.owner
        answer = own & (chunks.slot == gold.unsqueeze(1))
        here = answer.any(dim=1)
        logits = similarity(batch.anchors, chunks.vectors, options.similarity) / options.temperature
        positive = (logits * answer).sum(dim=1)
        terms = {}
        for name, seen in (("sequence", own), ("batch", ~own | answer)):
            term = log_sum_exp(logits.masked_fill(~seen, -torch.inf)) - positive
            term = torch.where(here, term, 0).sum()
            terms[name] = term if options.reduction == "sum" else term / here.sum().clamp_min(1)
        share = options.sequence_weight
        value = share * terms["sequence"] + (1 - share) * terms["batch"]
        return LossOutput(value, {**terms, "missing": (~here).float().mean()})
