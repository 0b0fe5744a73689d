"""A document as its sentences, and the mean of their vectors."""

from __future__ import annotations

from dataclasses import replace

import torch

from cse_core.errors import CseError
from cse_core.parts import Setup, SlicePooler
from cse_core.types import TokenBatch, offsets_of, positions_of
from cse_infocse.options import SentencesOptions
from cse_infocse.plugin import LEVEL


class Sentences(SlicePooler):
    """Cuts a text at separator tokens, each sentence to its first tokens; joins by the mean.

    InfoCSE: a document is the mean of its sentences' vectors, of 32 tokens at most, in fine-tuning
    and in retrieval. A text without a separator is one sentence. Gradients reach every sentence.

    Raises:
        CseError: If the encoder has no room for a sentence of this length, or its tokenizer no
            separator token.
    """

    level = LEVEL

    def __init__(self, options: SentencesOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        token = setup.tokenizer.hf.sep_token_id
        if token is None:
            raise CseError("the tokenizer has no separator token", where=f"pool.{setup.name}",
                           hint="take an encoder that has one, as BERT and RoBERTa do")  # fmt: skip
        self.separator = int(token)
        special = setup.tokenizer.special_count
        positions = options.length if setup.encoder is None else setup.encoder.max_positions
        if not special < options.length <= positions:
            raise CseError(
                f"a sentence has more than {special} tokens and at most {positions}",
                where=f"pool.{setup.name}.length",
                value=options.length,
                hint=f"--set pool.{setup.name}.length={min(positions, 32)}",
            )
        self.longest = options.length - special

    def slices(self, tokens: TokenBatch) -> TokenBatch:
        """Return a row for each sentence with content; a text without any stays one empty row."""
        cut = tokens.ids == self.separator
        row = tokens.row_of_token()
        # Sentence number of each token over all rows: a new one at each row and each separator.
        number = cut.long().cumsum(0) + row
        kept = (~cut).nonzero().squeeze(1)
        _, lengths = torch.unique_consecutive(number[kept], return_counts=True)
        parent = row[kept][offsets_of(lengths)[:-1]] if len(kept) else row[:0]
        empty = torch.ones(tokens.rows, dtype=torch.bool)
        empty[parent] = False
        missing = empty.nonzero().squeeze(1)
        order = torch.argsort(torch.cat([parent, missing]), stable=True)
        parents = torch.cat([parent, missing])[order]
        counts = torch.cat([lengths, torch.zeros_like(missing)])[order]
        within = positions_of(offsets_of(lengths))
        chosen = kept[within < self.longest]
        rows = tokens.take_tokens(chosen, counts.clamp_max(self.longest))
        slot = torch.arange(len(parents)) - torch.searchsorted(parents, parents)
        return replace(rows, owner=tokens.owner[parents], slot=slot)
