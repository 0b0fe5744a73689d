"""Embeddings without some of their elements, features or tokens."""

from __future__ import annotations

from typing import Generic, TypeVar

import torch
from torch import Tensor

from cse_consert.options import EmbeddingDropoutOptions, FeatureCutoffOptions, TokenCutoffOptions
from cse_core.functional import sample_in_rows
from cse_core.parts import Augmenter
from cse_core.types import StepContext, TokenBatch, View

OptionsT = TypeVar("OptionsT", EmbeddingDropoutOptions, FeatureCutoffOptions, TokenCutoffOptions)


class EmbeddingAugmenter(Augmenter, Generic[OptionsT]):
    """Sets some embeddings to zero; the others are scaled up only with ``rescale``.

    ConSERT, section 3.2. ``at`` says which embeddings.
    """

    options: OptionsT

    def __call__(
        self, x: Tensor, tokens: TokenBatch | None, view: View, ctx: StepContext
    ) -> Tensor:
        """Return ``[T, D]`` with some elements zero."""
        if tokens is None:
            raise RuntimeError(f"{self.name} was called without tokens")
        left = x * self.kept(x, tokens, ctx).to(x.dtype)
        return left / (1 - self.options.rate) if self.options.rescale else left

    def kept(self, x: Tensor, tokens: TokenBatch, ctx: StepContext) -> Tensor:
        """Return bool ``[T, D]`` or ``[T, 1]``, False for what becomes zero."""
        raise NotImplementedError


class EmbeddingDropout(EmbeddingAugmenter[EmbeddingDropoutOptions]):
    """Sets elements of the embeddings to zero.

    The paper drops each element with a probability; its code draws exactly ``int(L * D * rate)`` of
    the elements of a row (``draw = "count"``). This comes on top of the encoder's own dropout,
    which ``model.dropout`` sets.
    """

    def kept(self, x: Tensor, tokens: TokenBatch, ctx: StepContext) -> Tensor:
        """Return ``[T, D]``."""
        options = self.options
        draws = torch.rand(
            x.shape,
            generator=ctx.generator("dropout", shared=False, device=x.device),
            device=x.device,
        )
        if options.draw == "each":
            return draws >= options.rate
        width = x.shape[1]
        row = tokens.row_of_token().unsqueeze(1).expand(-1, width).reshape(-1)
        count = (tokens.lengths.double() * width * options.rate).long()
        cut = sample_in_rows(row, count.to(x.device, non_blocking=True), draws.view(-1))
        return ~cut.view(x.shape)


class FeatureCutoff(EmbeddingAugmenter[FeatureCutoffOptions]):
    """Sets ``int(rate * D)`` of the D features to zero, the same for all tokens of a row.

    After Shen et al., 2020. Each row draws its own features; so does each segment where a part
    slices.
    """

    def kept(self, x: Tensor, tokens: TokenBatch, ctx: StepContext) -> Tensor:
        """Return ``[T, D]``, equal for the tokens of a row."""
        draws = torch.rand(
            tokens.rows,
            x.shape[1],
            generator=ctx.generator("cutoff", shared=False, device=x.device),
            device=x.device,
        )
        cut = draws.topk(int(x.shape[1] * self.options.rate), dim=1).indices
        kept = torch.ones_like(draws, dtype=torch.bool).scatter_(1, cut, False)
        return kept[tokens.row_of_token()]


class TokenCutoff(EmbeddingAugmenter[TokenCutoffOptions]):
    """Sets the embeddings of ``int(rate * L)`` of a row's L tokens to zero.

    After Shen et al., 2020. As in ConSERT's code special tokens count and may be cut, unless
    ``tokens = "content"``, and attention still sees every token: only what it sees of some of them
    is zero.
    """

    def kept(self, x: Tensor, tokens: TokenBatch, ctx: StepContext) -> Tensor:
        """Return ``[T, 1]``."""
        draws = torch.rand(
            len(x),
            generator=ctx.generator("cutoff", shared=False, device=x.device),
            device=x.device,
        )
        # int(rate * n) for every n there may be: made on the CPU, where offsets are, in float64.
        sizes = torch.arange(int(tokens.lengths.max()) + 1).double()
        shares = (sizes * self.options.rate).long().to(x.device, non_blocking=True)
        if self.options.tokens == "all":
            among, lengths = None, tokens.lengths.to(x.device, non_blocking=True)
        else:
            among, lengths = ~tokens.special, tokens.content_lengths()
        cut = sample_in_rows(tokens.row_of_token(), shares[lengths], draws, among)
        return ~cut.unsqueeze(1)
