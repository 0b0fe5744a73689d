"""Embeddings without some of their elements."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_consert.options import EmbeddingDropoutOptions
from cse_core.functional import sample_in_rows
from cse_core.parts import Augmenter, Setup
from cse_core.types import StepContext, TokenBatch, View


class EmbeddingDropout(Augmenter):
    """Sets elements of the embeddings to zero; the others are not scaled up.

    ConSERT, section 3.2, drops each element with a probability; its code draws exactly
    ``int(L * D * rate)`` of the elements of a row (``draw = "count"``). This comes on top of the
    encoder's own dropout, which ``model.dropout`` sets.
    """

    def __init__(self, options: EmbeddingDropoutOptions, setup: Setup) -> None:
        self.options = options
        self.name = setup.name

    def __call__(
        self, x: Tensor, tokens: TokenBatch | None, view: View, ctx: StepContext
    ) -> Tensor:
        """Return ``[T, D]`` with some elements zero."""
        if tokens is None:
            raise RuntimeError("embedding-dropout was called without tokens")
        options = self.options
        draws = torch.rand(
            x.shape,
            generator=ctx.generator("dropout", shared=False, device=x.device),
            device=x.device,
        )
        if options.draw == "each":
            kept = draws >= options.rate
        else:
            width = x.shape[1]
            row = tokens.row_of_token().unsqueeze(1).expand(-1, width).reshape(-1)
            count = (tokens.lengths.double() * width * options.rate).long()
            cut = sample_in_rows(row, count.to(x.device, non_blocking=True), draws.view(-1))
            kept = ~cut.view(x.shape)
        left = x * kept.to(x.dtype)
        return left / (1 - options.rate) if options.rescale else left
