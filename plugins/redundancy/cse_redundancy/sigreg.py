"""Vectors pulled towards an isotropic Gaussian, on random lines."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_core.parts import Loss
from cse_core.types import Batch, LossOutput, Negatives, Positives, StepContext
from cse_redundancy.options import SigregOptions
from cse_redundancy.statistics import twins


class Sigreg(Loss):
    """``(1 - lambda) inv + lambda SIGReg`` (Balestriero and LeCun, 2025: LeJEPA).

    inv is the mean squared distance of both vectors of a text from their mean. SIGReg projects the
    vectors of each view on random unit vectors, and compares their characteristic function with
    that of a standard normal distribution by Epps and Pulley's statistic, times their number.
    """

    options: SigregOptions

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the loss."""
        left, right, weights = twins(batch.anchors, targets)
        device = left.device
        drawn = torch.randn(
            left.shape[1],
            self.options.slices,
            generator=ctx.generator("slices", device=device),
            dtype=left.dtype,
            device=device,
        )
        lines = drawn / drawn.norm(dim=0)
        bound, knots = self.options.bound, self.options.knots
        shape = torch.stack(
            [epps_pulley(rows @ lines, weights, bound, knots).mean() for rows in (left, right)]
        ).mean()
        apart = ((left - right) / 2).square().mean(dim=1, keepdim=True)
        distance = (apart * weights).sum() / weights.sum().clamp_min(1)
        share = self.options.share
        parts = {"invariance": distance.detach(), "sigreg": shape.detach()}
        return LossOutput((1 - share) * distance + share * shape, parts)


def epps_pulley(rows: Tensor, weights: Tensor, bound: float, knots: int) -> Tensor:
    """Return ``[K]`` statistics of the K columns of ``[M, K]``; 0 for a standard normal one.

    The integral over t of the squared distance of both characteristic functions, weighed by
    exp(-t^2 / 2), by the trapezoidal rule from minus ``bound`` to ``bound``. The functions are
    symmetric, so only positive t are computed.
    """
    step, total = bound / (knots - 1), weights.sum()
    t = torch.linspace(0, bound, knots, dtype=rows.dtype, device=rows.device)
    normal = (-t.square() / 2).exp()
    angles = t[:, None, None] * rows  # [knots, M, K]
    real, imaginary = (
        (wave * weights).sum(dim=1) / total.clamp_min(1) for wave in (angles.cos(), angles.sin())
    )
    apart = (real - normal[:, None]).square() + imaginary.square()
    widths = torch.full_like(t, 2 * step)
    widths[0] = widths[-1] = step
    return (widths * normal) @ apart * total
