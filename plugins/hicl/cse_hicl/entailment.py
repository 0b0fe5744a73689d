"""HiCLv2's third term: a segment belongs to its own text."""

from __future__ import annotations

import torch

from cse_core.functional import infonce_terms
from cse_core.parts import Loss
from cse_core.types import SENTENCE, Batch, LossOutput, Negatives, Positives, StepContext
from cse_hicl.options import EntailmentOptions


class Entailment(Loss):
    """InfoNCE from each segment to its own text; the other texts of the batch are negatives.

    HiCLv2 (HiCL, Appendix A.6, Eq. 3): a segment is entailed by the text that it is part of. The
    paper writes segment and texts of one view, so the target holds the very vector that it was
    joined of; ``sentences = "positive"`` takes the texts of the second view.
    """

    options: EntailmentOptions

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the mean (or sum) over the segments; ``targets`` and ``negatives`` are unused."""
        options = self.options
        texts = batch.views[options.sentences][SENTENCE]
        ordered, order = torch.sort(texts.owner)
        place = order[torch.searchsorted(ordered, batch.owner)]
        others = Negatives.of(
            texts.vectors,
            len(batch.anchors),
            name="sentences",
            mask=texts.owner.unsqueeze(0) == batch.owner.unsqueeze(1),
            row=batch.rows[texts.owner],
        )
        terms = infonce_terms(
            batch.anchors,
            Positives(texts.vectors[place].unsqueeze(1)),
            ctx.negatives(batch, options, others),
            temperature=options.temperature,
            kind=options.similarity,
        )
        return LossOutput(terms.sum() if options.reduction == "sum" else terms.mean())
