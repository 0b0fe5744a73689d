"""Tokens without an embedding."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_consert.options import TokenCutoffOptions
from cse_core.functional import sample_in_rows
from cse_core.parts import Augmenter, Setup
from cse_core.types import StepContext, TokenBatch, View


class TokenCutoff(Augmenter):
    """Sets the embeddings of ``int(rate * L)`` of a row's L tokens to zero.

    ConSERT, section 3.2 (after Shen et al., 2020). As in its code special tokens count and may be
    cut, unless ``tokens = "content"``, and attention still sees every token: only what it sees of
    some of them is zero. ``at`` says which embeddings.
    """

    def __init__(self, options: TokenCutoffOptions, setup: Setup) -> None:
        self.options = options
        self.name = setup.name

    def __call__(
        self, x: Tensor, tokens: TokenBatch | None, view: View, ctx: StepContext
    ) -> Tensor:
        """Return ``[T, E]`` with some rows zero."""
        if tokens is None:
            raise RuntimeError("token-cutoff was called without tokens")
        options = self.options
        draws = torch.rand(
            len(x),
            generator=ctx.generator("cutoff", shared=False, device=x.device),
            device=x.device,
        )
        # int(rate * n) for every n there may be: made on the CPU, where offsets are, in float64.
        sizes = torch.arange(int(tokens.lengths.max()) + 1).double()
        shares = (sizes * options.rate).long().to(x.device, non_blocking=True)
        if options.tokens == "all":
            among, lengths = None, tokens.lengths.to(x.device, non_blocking=True)
        else:
            among, lengths = ~tokens.special, tokens.content_lengths()
        cut = sample_in_rows(tokens.row_of_token(), shares[lengths], draws, among)
        kept = (~cut).to(x.dtype).unsqueeze(1)
        return x * kept / (1 - options.rate) if options.rescale else x * kept
