"""A queue of vectors that a moving average of the encoder made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from cse_core.parts import NegativeStore, Setup
from cse_core.types import Batch, Negatives, StepContext
from cse_esimcse.options import MomentumQueueOptions


class MomentumQueue(NegativeStore):
    """Keeps the vectors of the last batches as further negatives, the oldest first.

    ESimCSE, section 3.2: the loss has the columns ``[cos(z1, z2) | cos(z1, queue)]``. After a step
    the vectors of its texts without repetitions, encoded without dropout by the momentum encoder
    and mapped by the online head, are appended, and the last ``size`` rows stay; so the first step
    sees none. What encodes them is a branch: the recipe's ``ema`` has ``mode = "eval"`` and
    ``copies = "encoder"``. The authors' code copies the momentum encoder before the pretrained
    weights are loaded; the branch starts from the real ones.
    """

    def __init__(self, options: MomentumQueueOptions, setup: Setup) -> None:
        self.options = options
        self.name = setup.name
        device = setup.device
        self.vectors = torch.zeros(0, setup.dimension, device=device)
        self.row = torch.zeros(0, dtype=torch.long, device=device)
        self.age = torch.zeros(0, dtype=torch.long, device=device)

    def candidates(self, batch: Batch, ctx: StepContext) -> Negatives | None:
        """Return all that it holds; None before the first step has left something."""
        if not len(self.row):
            return None
        return Negatives.of(
            self.vectors, len(batch.anchors), name=self.name, row=self.row, age=self.age
        )

    def after_step(self, batch: Batch, ctx: StepContext) -> None:
        """Append this step's vectors and let the oldest go."""
        new = ctx.vectors(self.options.view, self.options.branch)[self.options.level]
        if len(self.row) == 0:
            # Before the first vectors nothing is known of their size: a head may change it.
            self.vectors = new.vectors[:0]
        self.vectors = self._appended(self.vectors, new.vectors)
        rows = batch.rows[new.owner]
        self.row = self._appended(self.row, rows)
        self.age = self._appended(self.age + 1, torch.ones_like(rows))

    def _appended(self, old: Tensor, new: Tensor) -> Tensor:
        new = new[-self.options.size :]
        stay = min(len(old), self.options.size - len(new))
        return torch.cat([old[len(old) - stay :], new])

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return vectors, corpus rows and ages."""
        return {"vectors": self.vectors, "row": self.row, "age": self.age}

    def load_state_dict(self, state: Mapping[str, Any], *args: Any, **kwargs: Any) -> None:
        """Restore what ``state_dict`` returned."""
        self.vectors, self.row, self.age = state["vectors"], state["row"], state["age"]
