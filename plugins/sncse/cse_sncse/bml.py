"""The bidirectional margin loss."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_core.functional import paired_similarity
from cse_core.parts import Loss
from cse_core.types import Batch, Embeddings, LossOutput, Negatives, Positives, StepContext
from cse_sncse.options import BmlOptions


class Bml(Loss):
    """``relu(D + alpha) + relu(-D - beta)``, D = s(h, soft negative) - s(h, positive).

    SNCSE (Wang and Dou, 2023), Eqs. 5 and 6; cosines without a temperature. It is zero in the band
    ``-beta <= D <= -alpha``. Negatives take no part: InfoNCE is a loss of its own beside it. The
    soft negative of an anchor is the row of the view with the anchor's key (sentence and segment);
    an anchor without one, or without a positive, has loss zero and is not counted in the mean.
    """

    options: BmlOptions

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the mean (or sum) over the anchors that have a soft negative.

        Logs the mean of D over them, and ``soft_negatives``, their share of the anchors.
        """
        kind = self.options.similarity
        view = batch.views.get(self.options.view, {}).get(batch.level)
        if view is None or not len(view):
            return LossOutput(
                0.0 * batch.anchors.sum(), {"soft_negatives": batch.anchors.new_zeros(())}
            )
        soft, known = _of_anchors(view, batch)
        difference = paired_similarity(batch.anchors, soft.unsqueeze(1), kind) - paired_similarity(
            batch.anchors, targets.vectors, kind
        )  # [A, P]
        terms = (difference + self.options.alpha).relu() + (-difference - self.options.beta).relu()
        weights = torch.ones_like(terms) if targets.weights is None else targets.weights
        weights = weights * known.unsqueeze(1)
        total = weights.sum(dim=1)
        share = weights / total.clamp_min(torch.finfo(total.dtype).tiny).unsqueeze(1)  # [A, P]
        counted = (total > 0).sum().clamp_min(1)
        value = (terms * share).sum()
        if self.options.reduction == "mean":
            value = value / counted
        gap = (difference.detach() * share).sum() / counted
        return LossOutput(value, {"difference": gap, "soft_negatives": known.float().mean()})


def _of_anchors(view: Embeddings, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the view's row ``[A, D]`` with each anchor's key, and whether there is one ``[A]``."""
    same = (view.owner.unsqueeze(0) == batch.owner.unsqueeze(1)) & (
        view.slot.unsqueeze(0) == batch.slot.unsqueeze(1)
    )  # [A, N]
    return view.vectors[same.to(torch.uint8).argmax(dim=1)], same.any(dim=1)
