"""The tokens of a parallel column, met one by one."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_cli.texts.table_cache import token_table
from cse_core.protocols import Corpus
from cse_core.tokenization.tokenizer import TextTokenizer, TokenTable
from cse_core.types import StepContext, TokenBatch


class ParallelTokens:
    """Sentences of a second language, tokenised once.

    Args:
        corpus: The training rows.
        column: Column of the sentences.
        tokenizer: Of the second language.
        longest: Tokens of a sentence that are kept.
        device: Where ids are looked up.
    """

    def __init__(
        self,
        corpus: Corpus,
        column: str,
        tokenizer: TextTokenizer,
        longest: int,
        device: torch.device,
    ) -> None:
        self.column, self.tokenizer = column, tokenizer
        self.longest, self.device = longest, device
        pad = tokenizer.hf.pad_token_id
        self.pad = 0 if pad is None else int(pad)
        self.corpus = self._placed(token_table(corpus.column(column), tokenizer, longest))

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
        ids, offsets, row = self._sentences(ctx)
        row = row[tokens.owner][tokens.row_of_token()]
        place = offsets[row] + tokens.source
        matched = (tokens.source >= 0) & ~tokens.special & (place < offsets[row + 1])
        return ids[torch.where(matched, place, len(ids) - 1)].long(), matched

    def _sentences(self, ctx: StepContext) -> tuple[Tensor, Tensor, Tensor]:
        """Return ids, where each sentence begins, and the sentence ``[B]`` of each batch row."""
        if ctx.round == 0:
            return *self.corpus, ctx.rows.to(self.device, non_blocking=True)
        # A round of mined pairs has rows of its own, which are no places in the corpus.
        texts = ctx.texts(self.column)
        return *self._placed(self.tokenizer.table(texts, self.longest)), torch.arange(
            len(texts), device=self.device
        )

    def _placed(self, table: TokenTable) -> tuple[Tensor, Tensor]:
        """Return ids, one padding token behind them, and offsets, where they are looked up."""
        ids = torch.cat([table.ids, table.ids.new_tensor([self.pad])])
        return ids.to(self.device), table.offsets.to(self.device)
