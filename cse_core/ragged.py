"""How tokens lying end to end enter a model and come back."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from cse_core.dropout import DropoutSource
from cse_core.row_layout import RowLayout


def row_slots(positions: Tensor, offsets: Tensor, width: int) -> Tensor:
    """Return each token's slot ``[T]`` in rows of ``width`` slots, at its position.

    Args:
        positions: ``[T]`` place in the row.
        offsets: ``[R+1]`` int64 on the CPU.
        width: Slots of a row.
    """
    starts = torch.arange(len(offsets) - 1) * width
    slots = starts.repeat_interleave(offsets.diff())
    return slots.to(positions.device, non_blocking=True) + positions


class Packed:
    """All rows as one sequence ``[1, T]``; attention alone knows where they begin.

    Args:
        tokens: ``[T, E]``, for its device.
        positions: ``[T]`` place in the row.
        offsets: ``[R+1]`` int64 on the CPU.
        source: Where attention dropout draws from.
        by_position: Put a row's tokens in the order of their positions, as attention by a sliding
            window needs when positions were permuted.
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
        self.arguments: dict[str, Any] = {
            "row_layout": RowLayout(offsets, tokens.device, source),
        }

    def to_model(self, tokens: Tensor) -> Tensor:
        """Return ``[T, X]`` as ``[1, T, X]``."""
        return (tokens if self._order is None else tokens[self._order]).unsqueeze(0)

    def from_model(self, states: Tensor) -> Tensor:
        """Return ``[1, T, X]`` as ``[T, X]``."""
        tokens = states.squeeze(0)
        return tokens if self._order is None else tokens[self._inverse]


class Padded:
    """Rows side by side, ``[R, L]``, padded to the longest; a token sits at its position.

    Args:
        tokens: ``[T, E]``, for its device.
        positions: ``[T]`` place in the row.
        offsets: ``[R+1]`` int64 on the CPU.

    Raises:
        ValueError: If the positions of a row are not 0 up to its length in some order.
    """

    def __init__(self, tokens: Tensor, positions: Tensor, offsets: Tensor) -> None:
        lengths = offsets.diff()
        self.rows, self.longest = len(lengths), int(lengths.max())
        self._slots = row_slots(positions, offsets, self.longest)
        places = torch.arange(self.longest)
        real = (places < lengths[:, None]).to(tokens.device, non_blocking=True)
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
