"""Where the rows of a batch lie, and the padding that attention alone sees."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from cse_core.dropout import DropoutSource


@dataclass
class LengthClass:
    """Rows of similar length that attend together, padded to the longest of them.

    Attributes:
        rows: Number of rows, ``r``.
        longest: Tokens of the longest row, ``l``.
        real: ``[r, l]`` bool, False on padding; None where all rows are equally long.
    """

    rows: int
    longest: int
    real: Tensor | None
    _bias: dict[tuple[torch.dtype, int | None], Tensor | None] = field(default_factory=dict)

    def bias(self, dtype: torch.dtype, window: int | None, device: torch.device) -> Tensor | None:
        """Return what is added to the scores, ``[r or 1, 1, 1 or l, l]``: 0, or minus infinity.

        Args:
            dtype: Number format of the scores.
            window: Tokens see others at a distance below this one; None sees the whole row.
            device: Where the scores are.
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
            self._bias[key] = (
                None
                if seen is None
                else torch.zeros(seen.shape, dtype=dtype, device=device).masked_fill_(
                    ~seen, float("-inf")
                )
            )
        return self._bias[key]


@dataclass(frozen=True)
class _HeadIndex:
    """Where the vector of a token and a head lies in padded order, and back."""

    index: Tensor  # [slots * heads] into [T * heads]
    inverse: Tensor  # [T * heads] into [slots * heads]
    padding: Tensor  # slots of padding, into [slots * heads]


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
        self.offsets = offsets.to(device=device, dtype=torch.int32, non_blocking=True)
        self._rows = _length_classes(self._lengths, split=device.type == "cpu")
        self.classes: list[LengthClass] = []
        for rows in self._rows:
            real = self._real(rows)
            uneven = None if bool(real.all()) else real.to(device, non_blocking=True)
            self.classes.append(LengthClass(len(rows), real.shape[1], uneven))
        self._indices: dict[int, _HeadIndex] = {}
        self.memory: tuple[Tensor, Tensor] | None = None

    def split(self, rows: Tensor) -> list[Tensor]:
        """Return ``[R, heads, d]``, one vector a row, as ``[r * heads, 1, d]`` for each class."""
        return [
            rows.index_select(0, of_class.to(self.device, non_blocking=True)).flatten(0, 1)[:, None]
            for of_class in self._rows
        ]

    def merge(self, parts: list[Tensor], heads: int) -> Tensor:
        """Return what :meth:`split` gave as ``[R, heads, d]``, in the order of the rows."""
        rows = torch.cat([part.reshape(-1, heads, part.shape[-1]) for part in parts])
        order = torch.cat(self._rows).argsort().to(self.device, non_blocking=True)
        return rows.index_select(0, order)

    def pad(self, tokens: Tensor) -> list[Tensor]:
        """Return ``[T, heads, d]`` as ``[r * heads, l, d]`` for each class of rows."""
        _, heads, size = tokens.shape
        vectors = tokens.reshape(-1, size)
        slots: Tensor = _Pad.apply(vectors, self._index(heads))  # type: ignore[no-untyped-call]
        parts = torch.split(slots, [c.rows * heads * c.longest for c in self.classes])
        return [
            part.view(c.rows * heads, c.longest, size)
            for part, c in zip(parts, self.classes, strict=True)
        ]

    def unpad(self, parts: list[Tensor], heads: int) -> Tensor:
        """Return what :meth:`pad` gave as ``[T, heads, d]``, without the padding."""
        size = parts[0].shape[-1]
        flat = [part.reshape(-1, size) for part in parts]
        slots = flat[0] if len(flat) == 1 else torch.cat(flat)
        tokens: Tensor = _Unpad.apply(slots, self._index(heads))  # type: ignore[no-untyped-call]
        return tokens.view(self.tokens, heads, size)

    def _real(self, rows: Tensor) -> Tensor:
        return torch.arange(int(self._lengths[rows].max())) < self._lengths[rows, None]

    def _index(self, heads: int) -> _HeadIndex:
        if heads not in self._indices:
            head = torch.arange(heads)[None, :, None]
            index, padding = [], []
            inverse = torch.empty(self.tokens * heads, dtype=torch.int64)
            first = 0
            for rows in self._rows:
                real = self._real(rows)[:, None, :].expand(-1, heads, -1)
                place = torch.arange(real.shape[2])
                # Padding repeats its row's last token: any finite value does.
                token = self._starts[rows, None] + place.minimum(self._lengths[rows, None] - 1)
                source = token[:, None, :] * heads + head
                slot = first + torch.arange(real.numel()).view(real.shape)
                inverse[source[real]] = slot[real]
                padding.append(slot[~real])
                index.append(source.flatten())
                first += real.numel()
            parts = (torch.cat(index), inverse, torch.cat(padding))
            on_device = (part.to(self.device, non_blocking=True) for part in parts)
            self._indices[heads] = _HeadIndex(*on_device)
        return self._indices[heads]


def _length_classes(lengths: Tensor, *, split: bool) -> list[Tensor]:
    """Return the rows of each class: a class holds lengths from over half its longest up."""
    ordered, rows = lengths.sort(descending=True, stable=True)
    rows = rows[ordered > 0]
    ordered = ordered[ordered > 0]
    classes = []
    while len(rows):
        count = int((ordered * 2 > ordered[0]).sum()) if split else len(rows)
        classes.append(rows[:count])
        rows, ordered = rows[count:], ordered[count:]
    return classes


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
        return slots.index_fill_(0, ctx.at.padding, 0.0), None
