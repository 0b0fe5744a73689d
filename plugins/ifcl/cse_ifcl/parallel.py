"""The tokens of a parallel column, met one by one."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_core.protocols import Rows, Tokenizer
from cse_core.types import StepContext, TokenBatch


class ParallelTokens:
    """Sentences of a second language, tokenised once.

    Args:
        rows: The rows of the round.
        column: Column of the sentences.
        tokenizer: Of the second language.
        longest: Tokens of a sentence that are kept.
    """

    def __init__(self, rows: Rows, column: str, tokenizer: Tokenizer, longest: int) -> None:
        self.rows, self.column = rows, column
        self.tokenizer, self.longest = tokenizer, longest
        pad = tokenizer.hf.pad_token_id
        self.pad = 0 if pad is None else int(pad)
        if rows.pairs is None:  # tokenised now, not in the first step
            rows.content(column, torch.empty(0, dtype=torch.long), tokenizer)

    def counterparts(self, tokens: TokenBatch, ctx: StepContext) -> tuple[Tensor, Tensor]:
        """Return the token at the same place of the other sentence, for each token of a view.

        Args:
            tokens: The view's tokens, with batch rows as owners.
            ctx: The step.

        Returns:
            ``[T]`` ids of the second vocabulary, the padding token without a counterpart,
            and ``[T]`` whether there is one. The place is a token's ``source``, so a token that
            was moved or doubled keeps its counterpart.
        """
        other = self._sentences(ctx)
        ids = torch.cat([other.ids, other.ids.new_tensor([self.pad])])
        ids, offsets = (each.to(ctx.device, non_blocking=True) for each in (ids, other.offsets))
        row = tokens.owner[tokens.row_of_token()]
        place = offsets[row] + tokens.source
        matched = (tokens.source >= 0) & (tokens.source < self.longest) & ~tokens.special
        matched &= place < offsets[row + 1]
        return ids[torch.where(matched, place, len(ids) - 1)], matched

    def _sentences(self, ctx: StepContext) -> TokenBatch:
        """Return the sentence of each batch row."""
        if ctx.round == 0:
            return self.rows.content(self.column, ctx.rows, self.tokenizer)
        # The rows of a batch of mined pairs are no places among those of the round.
        return self.tokenizer.content(ctx.texts(self.column), self.longest)
