"""Tokens without an embedding, counted over the places of a padded row."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_core.parts import Augmenter
from cse_core.types import StepContext, TokenBatch, View
from cse_mocose.options import TokenDropOptions


class TokenDrop(Augmenter):
    """Sets the word embeddings of some of a row's places to zero (MoCoSE, Table 5).

    The authors' code pads every row to 32 places and draws ``max(1, int(32 * rate))`` of them,
    special tokens and padding among them: a drawn place behind the row's end changes nothing, so
    a short row often stays as it is. With ``places = none`` a row's own tokens are drawn from. A
    row that is longer than ``places`` counts its own length.
    """

    options: TokenDropOptions

    def __call__(
        self, x: Tensor, tokens: TokenBatch | None, view: View, ctx: StepContext
    ) -> Tensor:
        """Return ``[T, E]`` with some rows zero."""
        if tokens is None:
            raise RuntimeError("token-drop was called without tokens")
        lengths = tokens.lengths
        among = lengths.clamp_min(self.options.places or 1)
        counts = (among.double() * self.options.rate).long().clamp_min(1)
        width = int(among.max()) if len(among) else 0
        draws = torch.rand(
            tokens.rows,
            width,
            generator=ctx.generator("drop", shared=False, device=x.device),
            device=x.device,
        )
        among, counts = (n.to(x.device, non_blocking=True).unsqueeze(1) for n in (among, counts))
        place = torch.arange(width, device=x.device)
        dropped = draws.masked_fill(place >= among, 2.0).argsort(dim=1).argsort(dim=1) < counts
        row = tokens.row_of_token()
        first = tokens.offsets[:-1].to(x.device, non_blocking=True)
        inside = torch.arange(len(x), device=x.device) - first[row]
        return x * (~dropped[row, inside]).to(x.dtype).unsqueeze(1)
