"""Rows of tokens lying end to end, and the index work on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

_OF_TOKENS = ("ids", "positions", "source", "word", "special")
NO_LABEL = -100
"""Label of a token that none was left on."""
_OF_ROWS = ("owner", "slot")


@dataclass(frozen=True)
class TokenBatch:
    """Rows of tokens lying end to end.

    ``offsets`` always stays on the CPU, so that no row arithmetic waits for a GPU.

    Attributes:
        ids: ``[T]`` vocabulary ids.
        positions: ``[T]`` index inside the row; parts may permute or omit some.
        source: ``[T]`` index in the sentence's own tokenisation; -1 for special, prompt and added
            tokens; a repeated token keeps it.
        word: ``[T]`` index of the word; -1 as above.
        special: ``[T]`` bool, special and prompt tokens.
        offsets: ``[R + 1]`` where each row begins; the last is T.
        owner: ``[R]`` batch row of the sentence that a row belongs to.
        slot: ``[R]`` which row of its sentence it is (segment number).
        labels: ``[T]`` ids that an augmenter leaves for losses on token states, ``NO_LABEL``
            elsewhere; None without any.
    """

    ids: Tensor
    positions: Tensor
    source: Tensor
    word: Tensor
    special: Tensor
    offsets: Tensor
    owner: Tensor
    slot: Tensor
    labels: Tensor | None = None

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Tensor:
        """Return ``[R]`` tokens of each row, on the CPU."""
        return self.offsets[1:] - self.offsets[:-1]

    def row_of_token(self) -> Tensor:
        """Return ``[T]`` the row of each token, on the device of the ids."""
        rows = torch.repeat_interleave(torch.arange(self.rows), self.lengths)
        return rows.to(self.ids.device, non_blocking=True)

    def content_lengths(self) -> Tensor:
        """Return ``[R]`` tokens of each row that are not special, on the device of the ids."""
        counts = torch.zeros(self.rows, dtype=torch.long, device=self.ids.device)
        return counts.index_add_(0, self.row_of_token(), (~self.special).long())

    def with_labels(self) -> tuple[TokenBatch, Tensor]:
        """Return the batch with labels, where nothing left any too, and ``[L]`` where some are."""
        labels = torch.full_like(self.ids, NO_LABEL) if self.labels is None else self.labels
        return replace(self, labels=labels), (labels != NO_LABEL).nonzero().squeeze(1)

    def to(self, device: torch.device) -> TokenBatch:
        """Return the batch on a device; the offsets stay on the CPU."""
        every = (*_OF_TOKENS, *_OF_ROWS, "labels")
        return replace(self, **self._mapped(every, lambda x: x.to(device, non_blocking=True)))

    def _mapped(self, names: Sequence[str], change: Callable[[Tensor], Tensor]) -> dict[str, Any]:
        """Change tensors by name, those that are there."""
        tensors = {name: getattr(self, name) for name in names}
        return {name: change(x) for name, x in tensors.items() if x is not None}

    def take_tokens(self, index: Tensor, lengths: Tensor) -> TokenBatch:
        """Return the tokens at ``index`` as rows of ``lengths``; positions start again at 0.

        Args:
            index: ``[T']`` indexes into the tokens, ordered by row.
            lengths: ``[R]`` tokens that each row has then; a row may be empty.
        """
        offsets = offsets_of(lengths)
        taken = self._mapped((*_OF_TOKENS, "labels"), lambda x: x[index])
        taken["positions"] = positions_of(offsets).to(self.ids.device)
        return replace(self, **taken, offsets=offsets)

    def keep_tokens(self, keep: Tensor) -> TokenBatch:
        """Return only the tokens marked in ``keep`` (``[T]`` bool); positions start again at 0."""
        kept = torch.zeros(self.rows, dtype=torch.long)
        kept.index_add_(0, self.row_of_token().cpu(), keep.long().cpu())
        return self.take_tokens(keep.nonzero().squeeze(1), kept)

    def take_rows(self, index: Tensor) -> TokenBatch:
        """Return the rows at ``index`` (``[R']``, CPU), in that order."""
        lengths = self.lengths[index]
        tokens = ragged_index(self.offsets[:-1][index], lengths)
        taken = self._mapped((*_OF_TOKENS, "labels"), lambda x: x[tokens])
        taken |= self._mapped(_OF_ROWS, lambda x: x[index])
        return replace(self, **taken, offsets=offsets_of(lengths))

    @staticmethod
    def join(batches: Sequence[TokenBatch], *, pinned: bool = False) -> TokenBatch:
        """Lay several batches end to end; owners and slots stay, labels are left behind.

        ``pinned``: into page-locked memory of the host, from which a copy to a GPU waits for
        nothing.
        """
        if len(batches) == 1 and not pinned:
            return batches[0]
        joined = {}
        for name in (*_OF_TOKENS, *_OF_ROWS):
            parts = [getattr(batch, name) for batch in batches]
            size, kind = sum(map(len, parts)), parts[0].dtype
            out = torch.empty(size, dtype=kind, pin_memory=True) if pinned else None
            joined[name] = torch.cat(parts, out=out)
        lengths = torch.cat([batch.lengths for batch in batches])
        return TokenBatch(offsets=offsets_of(lengths), **joined)


@dataclass(frozen=True)
class Units:
    """The tokens behind the vectors of a level of which a row has several.

    Attributes:
        index: ``[M]`` indices of tokens, those of each unit end to end.
        lengths: ``[N]`` tokens of each unit, at least one, on the CPU.
        row: ``[N]`` the row of each unit, in the order of the rows.
    """

    index: Tensor
    lengths: Tensor
    row: Tensor

    def __len__(self) -> int:
        """Return N."""
        return len(self.lengths)

    @staticmethod
    def of(tokens: TokenBatch, index: Tensor, lengths: Tensor) -> Units:
        """Make units of ``[N]`` lengths of the tokens at ``[M]`` indices.

        Raises:
            ValueError: If a unit has no token or tokens of two rows, or units are not in the order
                of the rows.
        """
        if int(lengths.clamp_min(1).sum()) != len(index):
            raise ValueError(f"{len(index)} tokens for units of {lengths.tolist()}: some at each")
        rows = tokens.row_of_token()[index]
        row = rows[offsets_of(lengths)[:-1]]
        if not torch.equal(row.repeat_interleave(lengths), rows) or bool((row.diff() < 0).any()):
            raise ValueError("a unit has tokens of two rows, or is out of the order of the rows")
        return Units(index, lengths, row)

    @staticmethod
    def of_tokens(tokens: TokenBatch, keep: Tensor) -> Units:
        """Make a unit of each token that is marked in ``keep`` (``[T]`` bool)."""
        index = keep.nonzero().squeeze(1)
        return Units.of(tokens, index, torch.ones_like(index))

    def to(self, device: torch.device) -> Units:
        """Return them on a device; the lengths stay on the CPU."""
        index, row = (x.to(device, non_blocking=True) for x in (self.index, self.row))
        return Units(index, self.lengths, row)

    @staticmethod
    def join(several: Sequence[tuple[Units, TokenBatch]]) -> Units:
        """Lay the units of several batches end to end."""
        tokens = offsets_of(torch.tensor([len(batch.ids) for _, batch in several])).tolist()
        rows = offsets_of(torch.tensor([batch.rows for _, batch in several])).tolist()
        return Units(
            torch.cat([u.index + tokens[i] for i, (u, _) in enumerate(several)]),
            torch.cat([units.lengths for units, _ in several]),
            torch.cat([u.row + rows[i] for i, (u, _) in enumerate(several)]),
        )

    def means(self, states: Tensor) -> Tensor:
        """Return ``[N, H]`` means of ``[T, H]`` states over the tokens of each unit."""
        taken = states[self.index]
        if len(self) == len(self.index):
            return taken
        taken = taken if taken.dtype.itemsize >= 4 else taken.float()
        places = torch.arange(len(self)).repeat_interleave(self.lengths)
        place, lengths = (x.to(taken.device, non_blocking=True) for x in (places, self.lengths))
        sums = taken.new_zeros(len(self), taken.shape[1]).index_add(0, place, taken)
        return sums / lengths.unsqueeze(1)


@dataclass(frozen=True)
class TokenStates:
    """A view's encoder output: rows of this process, or a chunk of them.

    Attributes:
        tokens: R wrapped rows of T tokens on the device, with their ``labels``; ``owner`` counts
            batch rows over all processes.
        states: ``[T, H]`` last states, with gradient, in the encoder's number format.
        layers: ``[T, H]`` states of the layers that ``TokenLoss.layers`` names.
        vectors: ``[R, D]`` vectors of the rows, with gradient.
        labelled: ``[L]`` indices of the tokens with a label.
        place: ``[R]`` index of each row's text in ``ctx.texts(column)``, on the CPU.
    """

    tokens: TokenBatch
    states: Tensor
    vectors: Tensor
    labelled: Tensor
    place: Tensor
    layers: Mapping[int, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class TokenSums:
    """What some rows add to a loss on token states: its value is ``total / count`` over all rows.

    Attributes:
        total: Scalar, the sum of the terms.
        count: Scalar without gradient, the number of terms; with none the loss is zero.
        parts: Sums for the log by name, divided by ``count`` too; every call has the same names.
    """

    total: Tensor
    count: Tensor
    parts: Mapping[str, Tensor] = field(default_factory=dict)


def offsets_of(lengths: Tensor) -> Tensor:
    """Return ``[R + 1]`` offsets of rows of these lengths, on the CPU."""
    offsets = torch.zeros(len(lengths) + 1, dtype=torch.long)
    torch.cumsum(lengths.cpu(), 0, out=offsets[1:])
    return offsets


def positions_of(offsets: Tensor) -> Tensor:
    """Return ``[T]`` the index of each token inside its row."""
    lengths = offsets[1:] - offsets[:-1]
    starts = torch.repeat_interleave(offsets[:-1], lengths)
    return torch.arange(int(offsets[-1])) - starts


def positions_in_order(places: Tensor, offsets: Tensor) -> Tensor:
    """Return ``[T]`` positions that start at 0 in each row, in the order of ``places``.

    Use it after dropping or repeating tokens: an order that a part permuted is kept. Equal places
    keep their order.

    Args:
        places: ``[T]`` integers, not negative.
        offsets: ``[R + 1]``, on the CPU.
    """
    if not len(places):
        return places
    lengths = offsets[1:] - offsets[:-1]
    row = torch.repeat_interleave(torch.arange(len(lengths)), lengths).to(places.device)
    order = torch.argsort(row * (places.max() + 1) + places, stable=True)
    positions = torch.empty_like(places)
    positions[order] = positions_of(offsets).to(places.device)
    return positions


def ragged_index(starts: Tensor, lengths: Tensor) -> Tensor:
    """Return the indexes ``start, start + 1, …`` of each row, end to end."""
    offsets = offsets_of(lengths)
    return positions_of(offsets) + torch.repeat_interleave(starts, lengths)
