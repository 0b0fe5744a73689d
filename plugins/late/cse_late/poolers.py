"""Vectors of the chunks of a text that is encoded whole."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_core.errors import CseError
from cse_core.functional import first_of_word
from cse_core.parts import MultiVectorPooler, Setup
from cse_core.types import TokenBatch, Units
from cse_late.options import ChunkVectorsOptions

STOPS = frozenset(".!?。！？")


class ChunkVectors(MultiVectorPooler):
    """The mean of each chunk's states, of a text that is encoded whole (late chunking, Section 4).

    Special tokens belong to no chunk. Chunks of sentences end behind a full stop, question or
    exclamation mark that stands behind more than one letter and not between two numbers: a
    tokenizer does not tell where blanks are, by which the authors' code decides.

    Raises:
        CseError: If the separator is not one token.
    """

    level = "chunk"
    options: ChunkVectorsOptions

    def __init__(self, options: ChunkVectorsOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self._hf = setup.tokenizer.hf
        self._separator = -1
        if options.by == "separator":
            ids = setup.tokenizer.prompt_ids(options.separator)
            if len(ids) != 1:
                what = f"is {len(ids)} tokens of the vocabulary, not one"
                raise CseError(what, where=f"pool.{setup.name}.separator", value=options.separator)
            (self._separator,) = ids

    def units(self, tokens: TokenBatch, view: str) -> Units:
        """Return runs of content tokens; all tokens of a row without any."""
        row = tokens.row_of_token()
        keep = ~tokens.special & (tokens.ids != self._separator)
        some = torch.zeros(tokens.rows, dtype=torch.bool).index_fill_(0, row[keep], True)
        keep = keep | ~some[row]
        ends = self._ends(tokens, keep)
        index = keep.nonzero().squeeze(1)
        # How many ends stand before each token, which start again in each row.
        passed = ends.cumsum(0) - ends
        chunk = torch.stack([row, passed])[:, index]
        lengths = torch.unique_consecutive(chunk, dim=1, return_counts=True)[1]
        return Units.of(tokens, index, lengths)

    def _ends(self, tokens: TokenBatch, keep: Tensor) -> Tensor:
        """Return ``[T]`` int64, 1 where a chunk ends behind a token."""
        if self.options.by == "separator":
            return (tokens.ids == self._separator).long()
        counted = keep if self.options.by == "tokens" else keep & self._stops(tokens)
        before = torch.cat([torch.zeros(1, dtype=torch.long), counted.cumsum(0)])
        inside = before[1:] - before[tokens.offsets[:-1]][tokens.row_of_token()]
        return (counted & (inside % self.options.size == 0)).long()

    def _stops(self, tokens: TokenBatch) -> Tensor:
        """Return ``[T]`` whether a sentence ends behind a token."""
        known, place = torch.unique(tokens.ids, return_inverse=True)
        words = [
            str(word).lstrip("#Ġ▁ ") for word in self._hf.convert_ids_to_tokens(known.tolist())
        ]
        stop, digit, letter = (
            torch.tensor([test(word) for word in words], dtype=torch.bool)[place]
            for test in (STOPS.__contains__, str.isdecimal, lambda w: len(w) == 1 and w.isalpha())
        )
        none = torch.zeros(1, dtype=torch.bool)
        before, after = torch.cat([none, digit[:-1]]), torch.cat([digit[1:], none])
        alone = letter & (first_of_word(tokens) == torch.arange(len(tokens.ids)))
        initial = torch.cat([none, alone[:-1]])
        return stop & ~(before & after) & ~initial
