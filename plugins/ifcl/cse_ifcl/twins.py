"""The loss of identical and fraternal twins."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_core.functional import infonce_terms, mean_over_positives, paired_similarity, reduce_terms
from cse_core.parts import Loss, Setup
from cse_core.types import INPUT, Batch, LossOutput, Negatives, Positives, StepContext
from cse_ifcl.options import TwinsOptions


class Twins(Loss):
    """The identical term, the fraternal term and the margin between them: IFCL, Eqs. 5 to 9.

    - identical: InfoNCE of ``h`` and ``h+`` against all negatives of the loss, stored ones too;
    - fraternal: InfoNCE of ``h`` and ``h-`` against the other rows of ``h-`` in the batch alone;
    - margin: ``| exp cos(h, h+) - exp cos(h, h-) - M |`` without temperature, where
      ``M = exp cos(e, e+) - exp cos(e, e-)`` is the same of the mean input embeddings and has no
      gradient.

    ``h-`` is a positive: the paper's name for the fraternal twin. The margin is of cosines
    whatever ``similarity`` says. With both directions M is the anchor's in both.
    """

    def __init__(self, options: TwinsOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.of_fraternal = options.model_copy(
            update={"target": options.twin, "negatives": "in-batch"}
        )

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the weighted sum of the terms, each the mean (or sum) over its anchors."""
        options = self.options
        weights = {
            name: getattr(options, name).at(ctx.step, ctx.total_steps)
            for name in ("identical", "fraternal", "margin")
        }
        fraternal = batch.targets[options.twin]
        parts: dict[str, Tensor] = {}
        if weights["identical"]:
            parts["identical"] = self._contrast(batch, targets, negatives)
        if weights["fraternal"]:
            others = ctx.negatives(batch, self.of_fraternal)
            parts["fraternal"] = self._contrast(batch, fraternal, others)
        gap, shown = _gap(batch, targets, fraternal)
        if weights["margin"]:
            parts["margin"], shown["innate_margin"] = self._margin(batch, targets, gap)
        value = batch.anchors.new_zeros(())
        for name, part in parts.items():
            value = value + weights[name] * part
        return LossOutput(value, {**parts, **shown})

    def _contrast(self, batch: Batch, targets: Positives, negatives: Negatives) -> Tensor:
        terms = infonce_terms(
            batch.anchors,
            targets,
            negatives,
            temperature=self.options.temperature,
            kind=self.options.similarity,
        )
        return reduce_terms(terms, targets, self.options.reduction)

    def _margin(self, batch: Batch, targets: Positives, gap: Tensor) -> tuple[Tensor, Tensor]:
        """Return the term of the twins' gap ``[A, P]``, and the mean innate margin."""
        innate = self._innate_margin(batch)
        losses = mean_over_positives((gap - innate.unsqueeze(1)).abs(), targets)
        return reduce_terms(losses, targets, self.options.reduction), innate.mean()

    def _innate_margin(self, batch: Batch) -> Tensor:
        """Return ``[A]`` the margin M of the sentences' mean input embeddings, a constant."""
        anchor = _inputs(batch, "anchor")
        identical, fraternal = (
            paired_similarity(anchor, _inputs(batch, view).unsqueeze(1)).squeeze(1)
            for view in (self.options.target, self.options.twin)
        )
        return (identical.exp() - fraternal.exp()).detach()


def _gap(
    batch: Batch, targets: Positives, fraternal: Positives
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return ``[A, P]`` exp cos(h, h+) - exp cos(h, h-), and the means that are logged of it."""
    identical = paired_similarity(batch.anchors, targets.vectors)
    other = paired_similarity(batch.anchors, fraternal.vectors)
    gap = identical.exp() - other.exp()
    shown = {"cos_identical": identical, "cos_fraternal": other, "twin_gap": gap}
    return gap, {name: value.detach().mean() for name, value in shown.items()}


def _inputs(batch: Batch, view: str) -> Tensor:
    """Return ``[A, E]`` the mean input embedding of each anchor's sentence in a view."""
    rows = batch.views[view][INPUT]
    place = rows.owner.new_zeros(len(batch.rows))
    place[rows.owner] = torch.arange(len(rows), device=place.device)
    return rows.vectors[place[batch.owner]]
