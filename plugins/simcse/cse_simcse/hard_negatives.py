"""Hard negatives of the supervised setting, and their weight."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from cse_core.parts import NegativeStore
from cse_core.types import Batch, Negatives, StepContext, View
from cse_simcse.options import HardNegativesOptions


class HardNegatives(NegativeStore):
    """Adds a view of hard negatives, which are negatives of every sentence of the batch.

    SimCSE, Eq. 5 and its code: ``hard_negative_weight`` is a logit, added only where an anchor
    meets its own hard negative. The paper writes it as a factor alpha in the denominator; the
    logit is log alpha.
    """

    options: HardNegativesOptions

    def views(self, rows: Tensor, ctx: StepContext) -> list[View]:
        """Return the view of the column's texts."""
        column = self.options.column
        texts, tokens = ctx.texts(column), ctx.tokens(column)
        return [View(self.options.view, "negative", "online", texts=texts, tokens=tokens)]

    def weigh(self, negatives: Negatives, batch: Batch, ctx: StepContext) -> Negatives:
        """Add the weight where an anchor meets its own hard negative."""
        if self.options.weight == 0.0:
            return negatives
        start = 0
        log_weights = negatives.log_weights.clone()
        for name, count in negatives.blocks:
            if name == self.options.view:
                same = negatives.row[start : start + count].unsqueeze(0) == batch.row.unsqueeze(1)
                log_weights[:, start : start + count] += same.to(log_weights) * self.options.weight
            start += count
        return replace(negatives, log_weights=log_weights)
