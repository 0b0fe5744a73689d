"""A document as its sentences, and the mean of their vectors."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from cse_core.errors import CseError
from cse_core.parts import Setup, SlicePooler
from cse_core.types import Embeddings, TokenBatch, offsets_of, positions_of
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
        found = setup.tokenizer.hf.sep_token_id
        if found is None:
            raise CseError("the tokenizer has no separator token", where=f"pool.{setup.name}",
                           hint="take an encoder that has one, as BERT and RoBERTa do")  # fmt: skip
        self.separator = int(found)
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
        offsets = offsets_of(counts.clamp_max(self.longest))
        first = torch.searchsorted(parents, parents)
        return replace(
            tokens,
            ids=tokens.ids[chosen],
            positions=positions_of(offsets),
            source=tokens.source[chosen],
            word=tokens.word[chosen],
            special=tokens.special[chosen],
            offsets=offsets,
            owner=tokens.owner[parents],
            slot=torch.arange(len(parents)) - first,
        )

    def join(self, rows: Embeddings) -> Embeddings:
        """Return the means of each owner's rows, in at least fp32."""
        place = (rows.slot == 0).long().cumsum(0) - 1  # [N]: sentences follow their first one
        owners = rows.owners
        if owners is None:
            owners = int(place[-1]) + 1 if len(rows) else 0
        vectors = rows.vectors if rows.vectors.dtype.itemsize >= 4 else rows.vectors.float()

        def sums(values: Tensor) -> Tensor:
            return values.new_zeros(owners, *values.shape[1:]).index_add(0, place, values)

        share = 1 / sums(vectors.new_ones(len(rows)))[place]
        return Embeddings(
            vectors=sums(vectors * share.unsqueeze(1)),
            owner=rows.owner.new_empty(owners).scatter(0, place, rows.owner),
            slot=rows.slot.new_zeros(owners),
            length=sums(rows.length),
        )
