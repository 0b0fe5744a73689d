"""Positions in another order."""

from __future__ import annotations

from dataclasses import replace

import torch

from cse_consert.options import TokenShuffleOptions
from cse_core.functional import sample_in_rows
from cse_core.parts import Augmenter
from cse_core.types import StepContext, TokenBatch, View


class TokenShuffle(Augmenter):
    """Permutes the positions of a row's tokens; the tokens themselves stay where they are.

    ConSERT, section 3.2: the order of the tokens is changed through the position ids alone. As in
    its code all tokens of a row take part, special ones too, unless ``tokens = "content"``. With
    ``rate`` below 1 so many of them, drawn for each row, exchange their positions (MoCoSE, Figure
    8). A row pooler that reads the first token still reads the first one.
    """

    options: TokenShuffleOptions

    def __call__(
        self, x: TokenBatch, tokens: TokenBatch | None, view: View, ctx: StepContext
    ) -> TokenBatch:
        """Return the rows with permuted positions."""
        draws = ctx.generator("shuffle", shared=False)
        row = x.row_of_token()
        among = torch.ones_like(x.special) if self.options.tokens == "all" else ~x.special
        if self.options.rate < 1:
            sizes = torch.zeros(x.rows, dtype=torch.long).index_add_(0, row, among.long())
            count = (sizes.double() * self.options.rate).long()
            among = sample_in_rows(row, count, _uniform(len(row), draws), among)
        moved = among.nonzero().squeeze(1)
        order = torch.argsort(_uniform(len(moved), draws))
        # By row, and inside a row in random order: whose position each of them takes.
        givers = moved[order[torch.argsort(row[moved][order], stable=True)]]
        return replace(x, positions=x.positions.index_copy(0, moved, x.positions[givers]))


def _uniform(count: int, draws: torch.Generator) -> torch.Tensor:
    return torch.rand(count, generator=draws, dtype=torch.float64)
