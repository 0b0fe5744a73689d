"""A text read twice, of which the second reading is pooled."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from cse_core.parts import RowPooler, Setup
from cse_core.types import Hidden, TokenBatch, offsets_of, positions_of
from cse_llm2vec.options import TEXT, EchoOptions


class Echo(RowPooler):
    """Echo embeddings (Springer et al., 2025): tokens of the second text have seen the whole first.

    A decoder reads from left to right, so that the first tokens of a text know nothing of the rest;
    those of its repetition do.
    """

    options: EchoOptions

    def __init__(self, options: EchoOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        if options.end:
            setup.tokenizer.end_rows(f"pool.{setup.name}.end")
        self._before, between, _ = options.template.split(TEXT)
        self._between = torch.tensor(setup.tokenizer.prompt_ids(between), dtype=torch.long)

    def prompt(self, view: str) -> tuple[str, str]:
        """Return the template's text before the first content; the other one is in the content."""
        return self._before, ""

    def content(self, tokens: TokenBatch) -> TokenBatch:
        """Return each row's tokens twice, with the template's special ones between them."""
        once = tokens.lengths.clamp_max(self.options.longest or 2**62)
        many = len(self._between)
        lengths = 2 * once + many
        offsets = offsets_of(lengths)
        place = positions_of(offsets)
        row = torch.repeat_interleave(torch.arange(tokens.rows), lengths)
        behind = place - once[row] - many  # in the second text from 0 on
        between = (place >= once[row]) & (behind < 0)
        index = tokens.offsets[:-1][row] + torch.where(behind >= 0, behind, place)
        index = index.masked_fill(between, len(tokens.ids))

        def twice(values: Tensor, fill: int) -> Tensor:
            return torch.cat([values, values.new_full((1,), fill)])[index]

        return replace(
            tokens,
            ids=twice(tokens.ids, 0).masked_scatter(between, self._between.repeat(tokens.rows)),
            positions=place,
            source=twice(tokens.source, -1),
            word=twice(tokens.word, -1),
            special=twice(tokens.special, True),
            offsets=offsets,
            labels=None,
        )

    def pool(self, hidden: Hidden, tokens: TokenBatch) -> Tensor:
        """Return ``[R, H]``."""
        last = (tokens.offsets[1:] - 1).to(tokens.ids.device, non_blocking=True)
        if self.options.pooling == "last":
            return hidden.at(last)
        row = tokens.row_of_token()
        place = torch.arange(len(row), device=row.device)
        none = torch.full_like(last, -1)
        end = none.scatter_reduce(0, row, place.masked_fill(tokens.special, -1), "amax")
        before = tokens.special & (place < end[row])  # the last one stands before the second text
        start = none.scatter_reduce(0, row, place.masked_fill(~before, -1), "amax") + 1
        kept = place >= torch.where(end < 0, last, start)[row]
        # Weights instead of a choice of tokens, for which a GPU would be waited for.
        states = hidden.last if hidden.last.dtype.itemsize >= 4 else hidden.last.float()
        weights = kept.to(states.dtype)
        sums = states.new_zeros(tokens.rows, states.shape[1])
        sums = sums.index_add(0, row, states * weights.unsqueeze(1))
        counts = weights.new_zeros(tokens.rows).index_add(0, row, weights)
        return sums / counts.clamp_min(1).unsqueeze(1)
