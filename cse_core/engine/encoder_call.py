"""One encoder call over several views: laid end to end, encoded, taken apart again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from cse_core.engine.views import SLOTS, PreparedView
from cse_core.models.sentence_encoder import SentenceEncoder
from cse_core.runtime.device import Precision
from cse_core.types import Embeddings, TokenBatch

Levels = dict[str, dict[str, Embeddings]]
Spans = list[tuple[str, TokenBatch, int, int]]
"""View, its tokens with batch rows as owners, and where they begin and end in the call."""
Change = Callable[[str, Tensor, Spans], Tensor]


@dataclass(frozen=True)
class Call:
    """An encoder call.

    Attributes:
        sentence_encoder: Who encodes.
        views: What is encoded, in order.
        owners: First and last batch row, of this process, that are encoded.
        first_owner: Batch row of this process's first row.
        change: Sees and changes ``[T, E]`` values at a point; None where nobody does.
    """

    sentence_encoder: SentenceEncoder
    views: Mapping[str, PreparedView]
    owners: tuple[int, int]
    first_owner: int
    device: torch.device
    precision: Precision
    input_level: bool
    change: Change | None = None

    def run(self) -> Levels:
        """Return the embeddings of each view by level."""
        pieces = {name: view.of_owners(*self.owners) for name, view in self.views.items()}
        bases, count = {}, 0
        for name, view in self.views.items():
            bases[name] = count
            count += len(view.owner)
        tokens = TokenBatch.join(
            [
                piece if not bases[name] else replace(piece, owner=piece.owner + bases[name])
                for name, piece in pieces.items()
            ],
            pinned=self.device.type == "cuda",
        )
        words, inputs = None, None
        if self.change is not None:
            spans = self._spans(pieces)
            words = partial(_changed, self.change, "word_embeddings", spans)
            inputs = partial(_changed, self.change, "input_embeddings", spans)
        with self.precision.autocast():
            levels = self.sentence_encoder.embed(
                tokens,
                self.device,
                on_words=words,
                on_input=inputs,
                input_level=self.input_level,
            )
        views: Levels = {name: {} for name in pieces}
        for level, joint in levels.items():
            start = 0
            for name, piece in pieces.items():
                stop = start + self.sentence_encoder.count(piece, level)
                views[name][level] = self._of_view(name, bases[name], joint, slice(start, stop))
                start = stop
        return views

    def _spans(self, pieces: Mapping[str, TokenBatch]) -> Spans:
        spans, start = [], 0
        for name, piece in pieces.items():
            stop = start + len(piece.ids)
            view = self.views[name]
            keyed = replace(
                piece,
                owner=view.owner[piece.owner] + self.first_owner,
                slot=piece.slot + view.repeats[piece.owner] * SLOTS,
            )
            spans.append((name, keyed.to(self.device), start, stop))
            start = stop
        return spans

    def _of_view(self, name: str, base: int, joint: Embeddings, rows: slice) -> Embeddings:
        """Return one view's rows of a joint call, with batch rows as owners."""
        view = self.views[name]
        owner, slot, vectors = joint.owner[rows], joint.slot[rows], joint.vectors[rows]
        if view.own_rows:
            shift = self.first_owner - base
            owner = owner + shift if shift else owner
        else:
            text = owner - base
            repeats, owners = (
                each.to(self.device, non_blocking=True) for each in (view.repeats, view.owner)
            )
            slot = slot + repeats[text] * SLOTS
            owner = owners[text] + self.first_owner
        return Embeddings(
            vectors if vectors.dtype.itemsize >= 4 else vectors.float(),
            owner,
            slot,
            joint.length[rows],
        )


def _changed(change: Change, point: str, spans: Spans, values: Tensor) -> Tensor:
    return change(point, values, spans)
