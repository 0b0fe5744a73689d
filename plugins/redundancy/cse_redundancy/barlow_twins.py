"""The cross-correlation of both views' dimensions, pulled towards the identity."""

from __future__ import annotations

import torch
from torch import nn

from cse_core.parts import Loss, Setup
from cse_core.types import Batch, LossOutput, Negatives, Positives, StepContext
from cse_redundancy.options import BarlowTwinsOptions
from cse_redundancy.statistics import compared, normalised, off_diagonal_square


class BarlowTwins(nn.Module, Loss):
    """``sum_i (1 - C_ii)^2 + lambda sum_{i != j} C_ij^2`` (Zbontar et al., 2021, Eq. 1).

    C is the correlation of dimension i of one view with dimension j of the other over the batch.
    """

    def __init__(self, options: BarlowTwinsOptions, setup: Setup) -> None:
        super().__init__()
        self.options, self.name = options, setup.name
        self.scale = nn.Parameter(torch.ones(setup.dimension)) if options.affine else None
        self.shift = nn.Parameter(torch.zeros(setup.dimension)) if options.affine else None

    def forward(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the loss; with a teacher the sum of those of both views."""
        same = different = batch.anchors.new_zeros(())
        for left, right, weights in compared(batch, targets, ctx, self.options, self.name):
            one, other = (normalised(rows, weights) for rows in (left, right))
            if self.scale is not None and self.shift is not None:
                scale, shift = (value[: left.shape[1]] for value in (self.scale, self.shift))
                one, other = (rows * scale + shift for rows in (one, other))
            correlation = (one * weights).T @ other / weights.sum().clamp_min(1)
            same = same + (1 - correlation.diagonal()).square().sum()
            different = different + off_diagonal_square(correlation)
        value = same + self.options.off_diagonal * different
        return LossOutput(value, {"diagonal": same.detach(), "off_diagonal": different.detach()})
