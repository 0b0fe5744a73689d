"""Where the rows of a batch lie, how they enter a model and come back, and the padding inside."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from cse_core.encoders.dropout import DropoutSource


@dataclass
class LengthClass:
    """Rows of similar length that attend together, padded to the longest of them.

    Attributes:
        rows: ``[r]`` which rows, on the CPU.
        longest: Tokens of the longest row, ``l``.
        real: ``[r, l]`` bool, False on padding; None where all rows are equally long.
    """

    rows: Tensor
    longest: int
    real: Tensor | None
    _bias: dict[tuple[torch.dtype, int | None], Tensor | None] = field(default_factory=dict)

    def bias(self, dtype: torch.dtype, window: int | None, device: torch.device) -> Tensor | None:
        """Return what is added to the scores, ``[r or 1, 1, 1 or l, l]``: 0, or minus infinity.

        Tokens see others at a distance below ``window``; without one they see the whole row.
        """
        if window is not None and window >= self.longest:
            window = None
        key = (dtype, window)
        if key not in self._bias:
            seen = None if self.real is None else self.real[:, None, None, :]
            if window is not None:
                place = torch.arange(self.longest, device=device)
                near = (place[:, None] - place[None, :]).abs() < window
                # A padded query may see nothing at all near it; its own place keeps it finite.
                own = torch.eye(self.longest, dtype=torch.bool, device=device)
                seen = near[None, None] if seen is None else (near & seen) | own
            self._bias[key] = None
            if seen is not None:
                bias = torch.zeros(seen.shape, dtype=dtype, device=device)
                self._bias[key] = bias.masked_fill_(~seen, float("-inf"))
        return self._bias[key]


@dataclass
class _HeadIndex:
    """Where the vector of a token and a head lies in padded order, and back."""

    index: Tensor  # [slots * heads] into [T * heads]
    inverse: Tensor  # [T * heads] into [slots * heads]
    padding: Tensor  # [slots * heads] bool

    @cached_property
    def padded(self) -> Tensor:
        """Slots of padding, into ``[slots * heads]``; how many there are, a GPU must be asked."""
        return self.padding.nonzero().squeeze(1)

    def clear(self, slots: Tensor) -> Tensor:
        """Put zeros on the padding of ``[slots * heads, d]``, in place."""
        if slots.device.type == "cpu":
            return slots.index_fill_(0, self.padded, 0.0)
        return slots.masked_fill_(self.padding[:, None], 0.0)


class RowLayout:
    """Where rows begin and end in a sequence of ``T`` tokens, and how attention pads them.

    Built once for a forward pass and handed through the model to every attention layer.

    Attributes:
        memory: Keys and values ``[1, T, key heads * d]`` of all tokens, in a layer whose queries
            are of one token a row; None in every other.

    Args:
        offsets: ``[R+1]`` int64 on the CPU; row ``r`` is ``offsets[r]:offsets[r+1]``.
        device: Where the tokens are.
        source: Where attention dropout draws from; None draws from torch's own generator.
    """

    def __init__(
        self, offsets: Tensor, device: torch.device, source: DropoutSource | None = None
    ) -> None:
        self.source = source
        self.device = device
        self.tokens = int(offsets[-1])
        self._starts = offsets[:-1]
        self._lengths = offsets.diff()
        self.longest = int(self._lengths.max())
        self.offsets = self._there(offsets.to(torch.int32))
        self._indices: dict[int, _HeadIndex] = {}
        self.memory: tuple[Tensor, Tensor] | None = None

    @cached_property
    def classes(self) -> list[LengthClass]:
        """Classes of rows that attend together; a kernel for rows of any length asks for none.

        On a CPU a class holds lengths from over half its longest up, else there is one class.
        """
        lengths, rows = self._lengths.sort(descending=True, stable=True)
        rows, lengths = rows[lengths > 0], lengths[lengths > 0]
        classes = []
        while len(rows):
            longest, count = int(lengths[0]), len(rows)
            if self.device.type == "cpu":
                count = int((lengths * 2 > longest).sum())
            real = None
            if int(lengths[count - 1]) < longest:
                place = torch.arange(longest, device=self.device)
                real = place < self._there(lengths[:count])[:, None]
            classes.append(LengthClass(rows[:count], longest, real))
            rows, lengths = rows[count:], lengths[count:]
        return classes

    def _there(self, values: Tensor) -> Tensor:
        return values.to(self.device, non_blocking=True)

    def split(self, rows: Tensor) -> list[Tensor]:
        """Return ``[R, heads, d]``, one vector a row, as ``[r * heads, 1, d]`` for each class."""
        return [
            rows.index_select(0, self._there(group.rows)).flatten(0, 1)[:, None]
            for group in self.classes
        ]

    def merge(self, parts: list[Tensor], heads: int) -> Tensor:
        """Return what :meth:`split` gave as ``[R, heads, d]``, in the order of the rows."""
        rows = torch.cat([part.reshape(-1, heads, part.shape[-1]) for part in parts])
        order = torch.cat([group.rows for group in self.classes])
        return rows.index_select(0, self._there(order.argsort()))

    def pad(self, tokens: Tensor) -> list[Tensor]:
        """Return ``[T, heads, d]`` as ``[r * heads, l, d]`` for each class of rows."""
        _, heads, size = tokens.shape
        vectors = tokens.reshape(-1, size)
        slots: Tensor = _Pad.apply(vectors, self._index(heads))  # type: ignore[no-untyped-call]
        shapes = [(len(c.rows) * heads, c.longest) for c in self.classes]
        parts = torch.split(slots, [rows * longest for rows, longest in shapes])
        return [part.view(*shape, size) for part, shape in zip(parts, shapes, strict=True)]

    def unpad(self, parts: list[Tensor], heads: int) -> Tensor:
        """Return what :meth:`pad` gave as ``[T, heads, d]``, without the padding."""
        size = parts[0].shape[-1]
        flat = [part.reshape(-1, size) for part in parts]
        slots = flat[0] if len(flat) == 1 else torch.cat(flat)
        tokens: Tensor = _Unpad.apply(slots, self._index(heads))  # type: ignore[no-untyped-call]
        return tokens.view(self.tokens, heads, size)

    def _index(self, heads: int) -> _HeadIndex:
        """Return where the vectors of so many heads lie; only what is one a row is made on the CPU.

        Slots are in the order ``[row of a class, head, place in the row]``, class behind class.
        """
        if heads not in self._indices:
            rows = torch.cat([c.rows for c in self.classes])
            width = torch.cat([torch.full((len(c.rows),), c.longest) for c in self.classes])
            slots = width * heads
            count = int(slots.sum())
            first, wide = torch.zeros_like(self._lengths), torch.zeros_like(self._lengths)
            first[rows], wide[rows] = slots.cumsum(0) - slots, width
            begin, first, wide, length = map(
                self._there, (self._starts, first, wide, self._lengths)
            )
            token = torch.arange(self.tokens, device=self.device)
            row = torch.repeat_interleave(length, output_size=self.tokens)
            head = torch.arange(heads, device=self.device)
            place = first[row] + token - begin[row]
            inverse = (place[:, None] + wide[row][:, None] * head).flatten()
            # Padding repeats its row's first vector: any finite value does.
            fill = torch.repeat_interleave(
                begin[self._there(rows)] * heads, self._there(slots), output_size=count
            )
            index = fill.index_copy_(0, inverse, torch.arange(len(inverse), device=self.device))
            padding = torch.ones(count, dtype=torch.bool, device=self.device)
            padding.index_fill_(0, inverse, False)
            self._indices[heads] = _HeadIndex(index, inverse, padding)
        return self._indices[heads]


class _Pad(torch.autograd.Function):
    """Gather vectors into padded slots.

    Padding is masked in attention and dropped behind it, so its gradient is zero and the backward
    pass is a gather too, several times cheaper than the general scatter.
    """

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, at: _HeadIndex) -> Tensor:
        ctx.at = at
        return vectors.index_select(0, at.index)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0].index_select(0, ctx.at.inverse), None


class _Unpad(torch.autograd.Function):
    """Gather vectors back; the backward pass leaves zeros on the padding."""

    @staticmethod
    def forward(ctx: Any, slots: Tensor, at: _HeadIndex) -> Tensor:
        ctx.at = at
        return slots.index_select(0, at.inverse)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        slots = gradients[0].index_select(0, ctx.at.index)
        cleared: Tensor = ctx.at.clear(slots)
        return cleared, None


def row_slots(positions: Tensor, offsets: Tensor, width: int) -> Tensor:
    """Return each token's slot ``[T]`` in rows of ``width`` slots, at its position."""
    starts = torch.arange(len(offsets) - 1) * width
    slots = starts.repeat_interleave(offsets.diff())
    return slots.to(positions.device, non_blocking=True) + positions


class Packed:
    """All rows as one sequence ``[1, T]``; attention alone knows where they begin.

    ``positions`` are the places ``[T]`` in the rows, ``offsets`` are ``[R+1]`` int64 on the CPU.
    With ``by_position`` a row's tokens are put in the order of their positions, as attention by a
    sliding window needs when positions were permuted.
    """

    def __init__(
        self,
        tokens: Tensor,
        positions: Tensor,
        offsets: Tensor,
        source: DropoutSource | None,
        by_position: bool,
    ) -> None:
        self._order: Tensor | None = None
        if by_position:
            longest = int(offsets.diff().max())
            self._order = row_slots(positions, offsets, longest).argsort()
            self._inverse = self._order.argsort()
            positions = positions[self._order]
        self.positions = positions.unsqueeze(0)
        self.arguments: dict[str, Any] = {"row_layout": RowLayout(offsets, tokens.device, source)}

    def to_model(self, tokens: Tensor) -> Tensor:
        """Return ``[T, X]`` as ``[1, T, X]``."""
        return (tokens if self._order is None else tokens[self._order]).unsqueeze(0)

    def from_model(self, states: Tensor) -> Tensor:
        """Return ``[1, T, X]`` as ``[T, X]``."""
        tokens = states.squeeze(0)
        return tokens if self._order is None else tokens[self._inverse]


class Padded:
    """Rows side by side, ``[R, L]``, padded to the longest; a token sits at its position.

    Raises:
        ValueError: On a CPU, if the positions of a row are not 0 up to its length in some order.
    """

    def __init__(self, tokens: Tensor, positions: Tensor, offsets: Tensor) -> None:
        lengths = offsets.diff()
        self.rows, self.longest = len(lengths), int(lengths.max())
        self._slots = row_slots(positions, offsets, self.longest)
        places = torch.arange(self.longest)
        real = (places < lengths[:, None]).to(tokens.device, non_blocking=True)
        if tokens.device.type == "cpu":  # a GPU would have to be waited for
            taken = torch.zeros_like(real)
            taken.view(-1)[self._slots.clamp(0, real.numel() - 1)] = True
            if not torch.equal(taken, real):
                raise ValueError("the positions of a row are not 0 up to its length in some order")
        self.positions = places.to(tokens.device, non_blocking=True).expand(self.rows, -1)
        self.arguments: dict[str, Any] = {"attention_mask": real.long()}

    def to_model(self, tokens: Tensor) -> Tensor:
        """Return ``[T, X]`` as ``[R, L, X]``, zero on the padding."""
        flat = tokens.new_zeros(self.rows * self.longest, tokens.shape[1])
        return flat.index_copy(0, self._slots, tokens).view(self.rows, self.longest, -1)

    def from_model(self, states: Tensor) -> Tensor:
        """Return ``[R, L, X]`` as ``[T, X]``."""
        return states.flatten(0, 1).index_select(0, self._slots)
