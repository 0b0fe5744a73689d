"""Rows without some of their features."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_consert.options import FeatureCutoffOptions
from cse_core.parts import Augmenter, Setup
from cse_core.types import StepContext, TokenBatch, View


class FeatureCutoff(Augmenter):
    """Sets ``int(rate * D)`` of the D features to zero, the same for all tokens of a row.

    ConSERT, section 3.2 (after Shen et al., 2020). Each row draws its own features; so does each
    segment where a part slices. ``at`` says which embeddings.
    """

    def __init__(self, options: FeatureCutoffOptions, setup: Setup) -> None:
        self.options = options
        self.name = setup.name

    def __call__(
        self, x: Tensor, tokens: TokenBatch | None, view: View, ctx: StepContext
    ) -> Tensor:
        """Return ``[T, D]`` with some columns of each row of tokens zero."""
        if tokens is None:
            raise RuntimeError("feature-cutoff was called without tokens")
        options = self.options
        draws = torch.rand(
            tokens.rows,
            x.shape[1],
            generator=ctx.generator("cutoff", shared=False, device=x.device),
            device=x.device,
        )
        cut = draws.topk(int(x.shape[1] * options.rate), dim=1).indices
        stays = 1 / (1 - options.rate) if options.rescale else 1.0
        kept = torch.full_like(draws, stays, dtype=x.dtype).scatter_(1, cut, 0.0)
        return x * kept[tokens.row_of_token()]
