"""A table of tokens that several processes make together."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from cse_core.runtime.distributed import rank_and_size, share
from cse_core.runtime.sharing import gather_rows
from cse_core.tokenization.tokenizer import TextTokenizer, TokenTable
from cse_core.types import offsets_of


def shared_table(
    tokenizer: TextTokenizer, texts: Sequence[str], longest: int | None = None
) -> TokenTable:
    """Return the table of texts of which each process tokenises its share; every process has all.

    Args:
        tokenizer: The tokenizer.
        texts: The same in every process.
        longest: Tokens of a text that are kept at most.

    Raises:
        ElsewhereError: If another process failed.
    """
    start, stop = share(len(texts), *rank_and_size())
    own: list[TokenTable] = []

    def lengths() -> torch.Tensor:
        own.append(tokenizer.table(texts[start:stop], longest))
        return own[0].offsets.diff()

    offsets = offsets_of(gather_rows(lengths))
    tokens = gather_rows(lambda: torch.stack([own[0].ids, own[0].word], dim=1))
    return TokenTable(tokens[:, 0].contiguous(), tokens[:, 1].contiguous(), offsets)
