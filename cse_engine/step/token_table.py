"""Content tokens of many texts, made once and looked up by row in every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cse_core.protocols import Tokenizer
from cse_core.types import TokenBatch, offsets_of, positions_of, ragged_index
from cse_engine.runtime.distributed import rank_and_size, share
from cse_engine.runtime.sharing import gather_rows

AT_ONCE = 10_000
"""Texts that are tokenised together."""
PROMPT = -2
"""Word of a token that belongs to the prompt of the tokenizer."""


@dataclass(frozen=True)
class TokenTable:
    """Content tokens of many texts, end to end.

    Attributes:
        ids: ``[T]`` int32 vocabulary ids.
        word: ``[T]`` int32 index of the word in its text; ``PROMPT`` in the tokenizer's prompt.
        offsets: ``[texts + 1]`` where each text begins.
    """

    ids: Tensor
    word: Tensor
    offsets: Tensor

    def rows(self, index: Tensor) -> TokenBatch:
        """Take the texts at ``index`` ``[R]`` as rows of content; row i has owner i."""
        lengths = self.offsets[1:][index] - self.offsets[:-1][index]
        tokens = ragged_index(self.offsets[:-1][index], lengths)
        offsets = offsets_of(lengths)
        positions = positions_of(offsets)
        word = self.word[tokens].long()
        return TokenBatch(
            ids=self.ids[tokens].long(),
            positions=positions,
            source=positions.masked_fill(word == PROMPT, -1),
            word=word.clamp_min(-1),
            special=word == PROMPT,
            offsets=offsets,
            owner=torch.arange(len(index)),
            slot=torch.zeros(len(index), dtype=torch.long),
        )


def token_table(
    tokenizer: Tokenizer,
    texts: Sequence[str],
    longest: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> TokenTable:
    """Tokenise texts without special tokens; nothing is kept on disk.

    Beside the texts and the table, memory holds one batch of them. Of a text at most ``longest``
    tokens are kept; ``progress`` hears after each batch how many texts are done.
    """
    ids, words = [torch.empty(0, dtype=torch.int32)], [torch.empty(0, dtype=torch.int32)]
    lengths = [torch.empty(0, dtype=torch.long)]
    for start in range(0, len(texts), AT_ONCE):
        batch = tokenizer.content(texts[start : start + AT_ONCE], longest)
        ids.append(batch.ids.int())
        words.append(batch.word.masked_fill(batch.special, PROMPT).int())
        lengths.append(batch.lengths)
        if progress is not None:
            progress(min(start + AT_ONCE, len(texts)))
    return TokenTable(torch.cat(ids), torch.cat(words), offsets_of(torch.cat(lengths)))


def shared_table(
    tokenizer: Tokenizer, texts: Sequence[str], longest: int | None = None
) -> TokenTable:
    """Tokenise the share of each process; every process gets the whole table.

    ``texts`` are the same in every process; at most ``longest`` tokens of one are kept.

    Raises:
        ElsewhereError: If another process failed.
    """
    start, stop = share(len(texts), *rank_and_size())
    local: list[TokenTable] = []

    def lengths() -> Tensor:
        local.append(token_table(tokenizer, texts[start:stop], longest))
        return local[0].offsets.diff()

    offsets = offsets_of(gather_rows(lengths))
    tokens = gather_rows(lambda: torch.stack([local[0].ids, local[0].word], dim=1))
    return TokenTable(tokens[:, 0].contiguous(), tokens[:, 1].contiguous(), offsets)
