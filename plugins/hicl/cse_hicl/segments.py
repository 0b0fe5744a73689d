"""Texts cut into segments, and the vectors of segments joined to those of texts."""

from __future__ import annotations

from dataclasses import replace

import torch

from cse_core.errors import CseError
from cse_core.functional import owner_means
from cse_core.parts import Setup, SlicePooler
from cse_core.types import Embeddings, TokenBatch, offsets_of, positions_of
from cse_hicl.options import LEVEL, SegmentsOptions


class Segments(SlicePooler):
    """Cuts a text of n tokens into ``1 + floor((n - 1) / L)`` segments, without overlap.

    HiCL, Section 3.1. The vector of a text is the mean of its segments' vectors, weighted by their
    tokens: those of the text itself, or where the wrapped text is cut all of them. No public code
    could be had; whether the paper's segments are wrapped each or the wrapped text is cut, and
    whether its heads stand before the join, it does not say (``wrap``, ``join``).

    Raises:
        CseError: If the encoder has no room for a segment of this length.
    """

    level = LEVEL

    def __init__(self, options: SegmentsOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.join_before_heads = options.join == "before-heads"
        if setup.encoder is not None:
            self._check_room(setup.encoder.max_positions, setup.tokenizer.special_count)

    def _check_room(self, positions: int, special: int) -> None:
        room = positions if self.options.wrap == "sentence" else positions - special
        if self.options.length > room:
            raise CseError(
                f"the encoder takes rows of {positions} tokens, so a segment has {room} at most",
                where=f"pool.{self.name}.length",
                value=self.options.length,
                hint=f"--set pool.{self.name}.length={min(room, 32)}",
            )

    def slices(self, tokens: TokenBatch) -> TokenBatch:
        """Return the rows cut; the tokens stay where they are, an empty row stays one row."""
        longest, lengths = self.options.length, tokens.lengths
        counts = torch.div(lengths + longest - 1, longest, rounding_mode="floor").clamp_min(1)
        parent = torch.repeat_interleave(torch.arange(tokens.rows), counts)
        slot = positions_of(offsets_of(counts))
        offsets = offsets_of((lengths[parent] - slot * longest).clamp(0, longest))
        return replace(
            tokens,
            positions=positions_of(offsets),
            offsets=offsets,
            owner=tokens.owner[parent],
            slot=slot,
        )

    def join(self, rows: Embeddings) -> Embeddings:
        """Return the (weighted) means of each owner's rows, in at least fp32.

        A text whose rows have no tokens at all, so that all weights are zero, gets the plain mean.
        """
        weighted = self.options.aggregate == "weighted"
        return owner_means(rows, rows.length if weighted else None)
