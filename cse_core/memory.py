"""Vectors of earlier steps, first in, first out: what queues, buffers and memories keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from cse_core.types import Negatives

Beside = Mapping[str, Tensor]


@dataclass(frozen=True)
class Held:
    """Vectors and the corpus rows that they are of.

    Attributes:
        vectors: ``[N, D]``, without gradient.
        row: ``[N]`` corpus rows.
        age: ``[N]`` steps since they were stored: 1 for those of the last push.
        beside: ``[N, ...]`` what else was pushed with them, by name, such as ``ctx.beside``
            returns; -1 or NaN for those without.
    """

    vectors: Tensor
    row: Tensor
    age: Tensor
    beside: Beside = field(default_factory=dict)

    def __len__(self) -> int:
        """Return N, without a look at the device."""
        return len(self.row)

    def columns(self) -> dict[str, Tensor]:
        """Give all tensors by name, those beside behind ``beside.``."""
        beside = {f"beside.{name}": values for name, values in self.beside.items()}
        return {"vectors": self.vectors, "row": self.row, "age": self.age, **beside}

    @staticmethod
    def of(columns: Mapping[str, Tensor]) -> Held:
        """Make one of what :meth:`columns` gave."""
        beside = {name[7:]: columns[name] for name in columns if name.startswith("beside.")}
        return Held(columns["vectors"], columns["row"], columns["age"], beside)

    def part(self, start: int, stop: int) -> Held:
        """Take the vectors from ``start`` up to ``stop``."""
        return Held.of({name: values[start:stop] for name, values in self.columns().items()})

    def negatives(
        self, anchors: int, *, name: str, view: str, log_weights: Tensor | None = None
    ) -> Negatives:
        """Return them as negatives for so many anchors."""
        beside = dict(self.beside)
        slot = beside.pop("slot", None)
        return Negatives.of(
            self.vectors,
            anchors,
            name=name,
            view=view,
            log_weights=log_weights,
            row=self.row,
            age=self.age,
            slot=slot,
            side={(name, branch): vectors for branch, vectors in beside.items()},
        )


class Fifo:
    """The vectors of the last steps; what ``held`` was before never changes.

    Args:
        newest_first: Order of the steps, by default the oldest first. The vectors of one step
            always keep their order, and the far end of the oldest step is dropped first.
    """

    def __init__(self, *, newest_first: bool = False) -> None:
        self.newest_first = newest_first
        self.held: Held | None = None

    def __len__(self) -> int:
        """Return the number of stored vectors."""
        return 0 if self.held is None else len(self.held)

    def push(self, vectors: Tensor, row: Tensor, size: int, beside: Beside | None = None) -> Held:
        """Store ``[B, D]`` vectors of rows ``[B]``, keep only ``size``; return what is held."""
        self.held = self.after(vectors, row, size, beside)
        return self.held

    def after(self, vectors: Tensor, row: Tensor, size: int, beside: Beside | None = None) -> Held:
        """Return the contents that a push would leave."""
        new = Held(vectors.detach(), row, torch.ones_like(row), beside or {})
        old = self.held or new.part(0, 0)
        old = replace(old, vectors=old.vectors.to(new.vectors.dtype), age=old.age + 1)
        room = max(size - len(new), 0)
        if self.newest_first:
            return _joined(new, old.part(0, room)).part(0, size)
        joined = _joined(old.part(max(len(old) - room, 0), len(old)), new)
        return joined.part(max(len(joined) - size, 0), len(joined))

    def state_dict(self) -> dict[str, Tensor]:
        """Return vectors, corpus rows, ages and what is beside; empty before the first push."""
        return {} if self.held is None else self.held.columns()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state_dict`` returned."""
        self.held = Held.of(state) if "vectors" in state else None


def _joined(first: Held, second: Held) -> Held:
    """Lay both end to end, in a copy; what only one has beside is -1 or NaN in the other."""
    parts, joined = (first.columns(), second.columns()), {}
    for name, like in (parts[0] | parts[1]).items():
        empty = float("nan") if like.is_floating_point() else -1
        for part in parts:
            if name not in part:
                part[name] = like.new_full((len(part["row"]), *like.shape[1:]), empty)
        joined[name] = torch.cat([part[name] for part in parts])
    return Held.of(joined)
