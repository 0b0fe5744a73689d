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

    def part(self, start: int, stop: int) -> Held:
        """Return the vectors from ``start`` up to ``stop``."""
        beside = {name: values[start:stop] for name, values in self.beside.items()}
        return Held(self.vectors[start:stop], self.row[start:stop], self.age[start:stop], beside)

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
        if self.held is None:
            return {}
        plain = {name: getattr(self.held, name) for name in ("vectors", "row", "age")}
        return plain | {f"beside.{name}": values for name, values in self.held.beside.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state_dict`` returned."""
        if "vectors" not in state:
            self.held = None
            return
        beside = {n[7:]: values for n, values in state.items() if n.startswith("beside.")}
        self.held = Held(state["vectors"], state["row"], state["age"], beside)


def _joined(first: Held, second: Held) -> Held:
    """Return a copy of both, one behind the other."""
    beside = {}
    for name in dict.fromkeys([*first.beside, *second.beside]):
        like = first.beside.get(name, second.beside.get(name))
        assert like is not None
        empty = float("nan") if like.is_floating_point() else -1
        parts = [
            part.beside[name]
            if name in part.beside
            else like.new_full((len(part), *like.shape[1:]), empty)
            for part in (first, second)
        ]
        beside[name] = torch.cat(parts)
    return Held(
        torch.cat([first.vectors, second.vectors]),
        torch.cat([first.row, second.row]),
        torch.cat([first.age, second.age]),
        beside,
    )
