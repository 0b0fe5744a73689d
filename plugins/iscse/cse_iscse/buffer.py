"""A buffer of vectors, first in, first out, that remembers the rows they came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from cse_core.functional import unit
from cse_core.types import Batch, Positives


@dataclass(frozen=True)
class Held:
    """Vectors and where they came from, the oldest first.

    Attributes:
        vectors: ``[N, D]`` of length one, without gradient.
        row: ``[N]`` corpus rows.
    """

    vectors: Tensor
    row: Tensor

    def __len__(self) -> int:
        """Return N, without a look at the device."""
        return len(self.row)


class Buffer:
    """The last ``size`` vectors of a view (B1 of the paper, ``lbuf`` of its public code).

    The public code begins with rows of zeros and looks whether the oldest is one; here the buffer
    begins empty. A batch larger than the buffer is searched whole, as there, but leaves its last
    ``size`` vectors, so that the buffer never grows.

    Args:
        size: Vectors that it keeps.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.held: Held | None = None

    @property
    def full(self) -> bool:
        """Return whether it holds as many as it can."""
        return self.held is not None and len(self.held) >= self.size

    def after(self, vectors: Tensor, row: Tensor) -> Held:
        """Return what it would hold after these ``[B, D]`` vectors, of rows ``[B]``, entered."""
        if self.held is None:
            return Held(vectors, row)
        kept = max(self.size - len(row), 0)
        first = max(len(self.held) - kept, 0)
        held = self.held.vectors[first:].to(vectors.dtype)
        return Held(torch.cat([held, vectors]), torch.cat([self.held.row[first:], row]))

    def enter(self, vectors: Tensor, row: Tensor) -> Held:
        """Let these enter, and the oldest leave; return what it holds now."""
        held = self.after(vectors, row)
        self.held = Held(held.vectors[-self.size :], held.row[-self.size :])
        return self.held

    def state(self) -> dict[str, Any]:
        """Return its vectors and rows."""
        return {} if self.held is None else {"vectors": self.held.vectors, "row": self.held.row}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state`` returned."""
        if "vectors" in state:
            self.held = Held(state["vectors"], state["row"])


def positives_of(batch: Batch, view: str) -> Tensor | None:
    """Return a view's ``[A, D]`` vectors at length one, with gradient; None where it is absent."""
    found: Positives | None = batch.targets.get(view)
    if found is None or not len(batch.anchors):
        return None
    return unit(found.vectors[:, 0])
