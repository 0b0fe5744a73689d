"""Vectors of earlier steps, first in, first out: what queues, buffers and memories keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Held:
    """Vectors and the corpus rows that they are of.

    Attributes:
        vectors: ``[N, D]``, without gradient.
        row: ``[N]`` corpus rows.
        age: ``[N]`` steps since they were stored: 1 for those of the last push.
    """

    vectors: Tensor
    row: Tensor
    age: Tensor

    def __len__(self) -> int:
        """Return N, without a look at the device."""
        return len(self.row)

    def part(self, start: int, stop: int) -> Held:
        """Return the vectors from ``start`` up to ``stop``."""
        return Held(self.vectors[start:stop], self.row[start:stop], self.age[start:stop])


class Fifo:
    """The vectors of the last steps; what ``held`` was before never changes.

    Args:
        newest_first: Order of the steps, by default the oldest first. The vectors of one step
            always keep their order, and the far end of the oldest step is dropped first.
    """

    def __init__(self, *, newest_first: bool = False) -> None:
        self.newest_first = newest_first
        self.held: Held | None = None
        self._front = _Front()

    def __len__(self) -> int:
        """Return how many vectors are held."""
        return 0 if self.held is None else len(self.held)

    def push(self, vectors: Tensor, row: Tensor, size: int) -> Held:
        """Store ``[B, D]`` vectors of rows ``[B]``, drop all but ``size``; return what is held."""
        self.held = self.after(vectors, row, size)
        return self.held

    def after(self, vectors: Tensor, row: Tensor, size: int) -> Held:
        """Return what would be held after a push."""
        new = Held(vectors.detach(), row, torch.ones_like(row))
        old = self.held or new.part(0, 0)
        held, age = old.vectors.to(new.vectors.dtype), old.age + 1
        if self.newest_first:
            kept = min(size, len(old) + len(new))
            return Held(
                self._front.put(new.vectors, held, kept),
                torch.cat([new.row, old.row])[:kept],
                torch.cat([new.age, age])[:kept],
            )
        start = max(len(old) + len(new) - size, 0)
        joined = Held(
            torch.cat([held[start:], new.vectors]),
            torch.cat([old.row[start:], new.row]),
            torch.cat([age[start:], new.age]),
        )
        return joined.part(max(len(joined) - size, 0), len(joined))

    def state_dict(self) -> dict[str, Tensor]:
        """Return vectors, corpus rows and ages; nothing before the first push."""
        return {} if self.held is None else dict(vars(self.held))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state_dict`` returned."""
        empty = "vectors" not in state
        self.held = None if empty else Held(state["vectors"], state["row"], state["age"])


class _Front:
    """Rows of a tensor with room before them, so that adding some moves the others seldom."""

    def __init__(self) -> None:
        self._rows: Tensor | None = None
        self._start = 0

    def put(self, new: Tensor, held: Tensor, kept: int) -> Tensor:
        """Return ``[kept, D]``: the new rows, and behind them the first of those held.

        Rows are written only where nothing was.
        """
        count = kept - len(new)
        if count < 0:
            return new[:kept].clone()
        rows = self._rows
        there = rows is not None and held.data_ptr() == rows[self._start :].data_ptr()
        if rows is None or not there or self._start < len(new):
            room = max(8 * len(new), count // 8)
            rows = self._rows = held.new_empty(room + count, held.shape[1])
            rows[room:] = held[:count]
            self._start = room
        self._start -= len(new)
        rows[self._start : self._start + len(new)] = new
        return rows[self._start : self._start + kept]
