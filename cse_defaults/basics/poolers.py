"""Poolers: a vector of each row from its token states, and one of each token."""

from __future__ import annotations

import string

import torch
from torch import Tensor

from cse_core.functional import row_means
from cse_core.options import PoolerOptions
from cse_core.parts import MultiVectorPooler, RowPooler, Setup
from cse_core.types import Hidden, TokenBatch, Units
from cse_defaults.basics.options import FirstLastOptions, LastTokenOptions, TokenVectorsOptions


class Cls(RowPooler):
    """The state of each row's first token."""

    def reads(self, tokens: TokenBatch) -> Tensor:
        """Return the rows' first tokens ``[R]``."""
        return tokens.offsets[:-1]

    def pool(self, hidden: Hidden, tokens: TokenBatch) -> Tensor:
        """Return ``[R, H]``."""
        return hidden.at(self.reads(tokens))


class LastToken(RowPooler):
    """The state of each row's last token: the end token, by default put there where it is not.

    Raises:
        CseError: If the tokenizer has no end token.
    """

    def __init__(self, options: LastTokenOptions, setup: Setup) -> None:
        if options.end:
            setup.tokenizer.end_rows(f"pool.{setup.name}.end")

    def reads(self, tokens: TokenBatch) -> Tensor:
        """Return the rows' last tokens ``[R]``."""
        return tokens.offsets[1:] - 1

    def pool(self, hidden: Hidden, tokens: TokenBatch) -> Tensor:
        """Return ``[R, H]``."""
        return hidden.at(self.reads(tokens))


class Mean(RowPooler):
    """The mean of a row's last states, special tokens counted as sentence-transformers does.

    Without the prompt, what stands before the text is left out in the rows that have one, its
    special tokens too, and what stands behind it is not.
    """

    def __init__(self, options: PoolerOptions, setup: Setup) -> None:
        self.include_prompt = getattr(options, "include_prompt", True)
        self.tokenizer = setup.tokenizer

    def pool(self, hidden: Hidden, tokens: TokenBatch) -> Tensor:
        """Return ``[R, H]``."""
        if self.include_prompt:
            return row_means(hidden.last, tokens)
        special, row = tokens.special.cpu(), tokens.row_of_token().cpu()
        seen = torch.cat([torch.zeros(1, dtype=torch.long), (~special).cumsum(0)])  # of the texts
        place = torch.arange(len(special)) - tokens.offsets[row]
        before = seen[1:] == seen[tokens.offsets[row]]
        before &= place < (tokens.lengths - len(self.tokenizer.after))[row]
        counts = torch.zeros(tokens.rows, dtype=torch.long).index_add_(0, row, before.long())
        kept = ~(before & (counts > len(self.tokenizer.before))[row]).to(hidden.last.device)
        return row_means(hidden.last[kept], tokens.keep_tokens(kept))


class FirstLast(RowPooler):
    """The mean over tokens of the average of a first and the last state (``first`` says which)."""

    def __init__(self, options: FirstLastOptions, setup: Setup) -> None:
        self.first = 0 if options.first == "embeddings" else 1
        self.layers = (self.first,)

    def pool(self, hidden: Hidden, tokens: TokenBatch) -> Tensor:
        """Return ``[R, H]``."""
        return row_means((hidden.layers[self.first] + hidden.last) / 2, tokens)


class TokenVectors(MultiVectorPooler):
    """A vector of each token, for late interaction (Khattab and Zaharia 2020, ColBERT).

    As by default in sentence-transformers, queries are not filled up with mask tokens. The
    projection to fewer numbers is a head: ``mlp`` with ``level = "token"``.
    """

    level = "token"
    options: TokenVectorsOptions

    def __init__(self, options: TokenVectorsOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self._skipped: Tensor | None = None
        if options.skip == "punctuation":
            hf = setup.tokenizer.hf
            ids = {hf.convert_tokens_to_ids(sign) for sign in string.punctuation}
            self._skipped = torch.tensor(sorted(ids - {None, hf.unk_token_id}))

    def units(self, tokens: TokenBatch, view: str) -> Units:
        """Return each token that counts; all of a row without any."""
        keep = torch.ones_like(tokens.special) if self.options.special else ~tokens.special
        if self._skipped is not None and view != "anchor":
            keep = keep & ~torch.isin(tokens.ids, self._skipped)
        row = tokens.row_of_token()
        some = torch.zeros(tokens.rows, dtype=torch.bool).index_fill_(0, row[keep], True)
        return Units.of_tokens(tokens, keep | ~some[row])
