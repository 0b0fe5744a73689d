"""Negatives of noise, and the gradient ascent that makes them harder."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_core.functional import similarity, unit
from cse_core.parts import NegativeStore
from cse_core.types import Batch, Negatives, StepContext
from cse_dclr.options import NoiseOptions


class Noise(NegativeStore):
    """Draws Gaussian vectors in each step, as negatives of every anchor.

    DCLR, noise-based negatives: they lie all over the space of the sentence vectors, so to be
    unlike them all is to be spread evenly. A few steps of ascent make them harder: in the paper on
    the contrastive loss whose denominator is the noise alone, in the authors' code on that of the
    batch with the noise. There are ``int(B * times)``, shared by the batch as in the code. They
    carry no gradient, and nothing is kept.
    """

    options: NoiseOptions

    def candidates(self, batch: Batch, ctx: StepContext) -> Negatives | None:
        """Return this step's noise, ``[int(A * times), D]``."""
        options, anchors = self.options, batch.anchors.detach()
        count = int(len(anchors) * options.times)
        if not count:
            return None
        drawn = torch.randn(
            count,
            anchors.shape[1],
            generator=ctx.generator(f"{self.name}.vectors", device=anchors.device),
            device=anchors.device,
        )
        competing = batch.targets.get(options.view) if options.objective == "batch" else None
        vectors = harder(
            drawn.to(anchors.dtype) * options.deviation,
            anchors,
            None if competing is None else competing.vectors.detach().flatten(0, 1),
            steps=options.steps,
            size=options.step_size,
            temperature=options.temperature,
        )
        return Negatives.of(vectors, len(anchors), name=self.name)


@torch.no_grad()
def harder(
    noise: Tensor,
    anchors: Tensor,
    positives: Tensor | None,
    *,
    steps: int,
    size: float,
    temperature: float,
) -> Tensor:
    """Move vectors of noise up the contrastive loss, each by ``size`` in every step.

    The loss of anchor i is ``-log p`` of its positive by cosines a_i . u_k over ``temperature``;
    its gradient for the noise vector k, whose direction is u_k, has the direction of
    ``sum_i p_ik (a_i - (a_i . u_k) u_k)``, whatever the positive is worth in the numerator. A
    vector without a gradient stays where it is.

    Args:
        noise: ``[N, D]``.
        anchors: ``[A, D]``.
        positives: ``[B, D]`` that the noise competes with in p; None: the noise alone.
        steps: How many.
        size: Length of a step.
        temperature: Divides the cosines.

    Returns:
        ``[N, D]``.
    """
    if not steps or not len(noise) or not len(anchors):
        return noise
    ones = unit(anchors)
    others = None
    if positives is not None:
        others = torch.logsumexp(similarity(anchors, positives) / temperature, dim=1)  # [A]
    for _ in range(steps):
        directions = unit(noise)
        cosines = ones @ directions.T  # [A, N]
        logits = cosines / temperature
        total = torch.logsumexp(logits, dim=1)
        if others is not None:
            total = torch.logaddexp(total, others)
        shares = (logits - total.unsqueeze(1)).exp()
        gradient = shares.T @ ones - (shares * cosines).sum(dim=0).unsqueeze(1) * directions
        lengths = gradient.norm(dim=1, keepdim=True)
        tiny = torch.finfo(lengths.dtype).tiny
        noise = noise + size * torch.where(lengths > tiny, gradient / lengths.clamp_min(tiny), 0.0)
    return noise
