"""Negatives of noise."""

from __future__ import annotations

import torch

from cse_core.parts import NegativeStore, Setup
from cse_core.types import Batch, Negatives, StepContext
from cse_dclr.ascent import harder
from cse_dclr.options import NoiseOptions


class Noise(NegativeStore):
    """Draws Gaussian vectors in each step, as negatives of every anchor.

    DCLR, noise-based negatives: they lie all over the space of the sentence vectors, so to be
    unlike them all is to be spread evenly. A few steps of ascent make them harder: in the paper on
    the contrastive loss whose denominator is the noise alone, in the authors' code on that of the
    batch with the noise. There are ``int(B * times)``, shared by the batch as in the code. They
    carry no gradient, and nothing is kept.
    """

    def __init__(self, options: NoiseOptions, setup: Setup) -> None:
        self.options = options
        self.name = setup.name

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
