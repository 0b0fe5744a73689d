"""The InfoNCE loss."""

from __future__ import annotations

from cse_core.functional import infonce_terms, reduce_terms
from cse_core.parts import Loss
from cse_core.types import Batch, LossOutput, Negatives, Positives, StepContext
from cse_defaults.basics.options import InfonceOptions


class Infonce(Loss):
    """Cross entropy of the positive among the negatives (InfoNCE, also NT-Xent and MNRL).

    ``-log( exp(s(h, h+)/t) / (exp(s(h, h+)/t) + sum_n w_n exp(s(h, n)/t)) )``, SimCSE (Gao et al.
    2021), Eq. 1. Both directions, other rows of either view as negatives and several positives are
    core options of every loss.
    """

    options: InfonceOptions

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the mean (or sum) over the anchors that have a positive."""
        terms = infonce_terms(
            batch.anchors,
            targets,
            negatives,
            temperature=self.options.temperature,
            kind=self.options.similarity,
        )
        return LossOutput(reduce_terms(terms, targets, self.options.reduction))
