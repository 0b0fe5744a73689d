"""Variance, invariance and covariance of the vectors of a batch."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_core.parts import Loss
from cse_core.types import Batch, LossOutput, Negatives, Positives, StepContext
from cse_redundancy.options import VicregOptions
from cse_redundancy.statistics import compared, moments, off_diagonal_square

STD_EPS = 1e-4
"""Added to variances before the root."""


class Vicreg(Loss):
    """``lambda s(Z, Z') + mu (v(Z) + v(Z')) + nu (c(Z) + c(Z'))`` (Bardes et al., 2022, Eq. 6).

    s is the mean squared distance of both vectors of a text, v the mean over dimensions of what
    their standard deviation lacks to 1, c the sum of squared covariances of different dimensions
    divided by the dimensions. ``variant`` has what the public code does otherwise.
    """

    options: VicregOptions

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the loss; with a teacher the sum of those of both views."""
        options, published = self.options, self.options.variant == "published"
        sums = [batch.anchors.new_zeros(()) for _ in range(3)]
        for left, right, weights in compared(batch, targets, ctx, options, self.name):
            distance = ((left - right).square() * weights).sum() / weights.sum().clamp_min(1)
            spreads = [_spread(rows, weights) for rows in (left, right)]
            terms = (
                distance / left.shape[1] if published else distance,
                sum(lack for lack, _ in spreads) / (2 if published else 1),
                sum(covariance for _, covariance in spreads),
            )
            sums = [total + term for total, term in zip(sums, terms, strict=True)]
        names = ("invariance", "variance", "covariance")
        value = torch.stack([getattr(options, n) * s for n, s in zip(names, sums, strict=True)])
        parts = {name: total.detach() for name, total in zip(names, sums, strict=True)}
        return LossOutput(value.sum(), parts)


def _spread(rows: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return what the deviations of ``[M, D]`` rows lack to 1, and their squared covariances."""
    apart, total = moments(rows, weights)
    covariance = (apart * weights).T @ apart / (total - 1).clamp_min(1)
    lack = (1 - (covariance.diagonal() + STD_EPS).sqrt()).relu().mean()
    return lack, off_diagonal_square(covariance) / rows.shape[1]
