"""A queue of negatives without near-duplicates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from cse_core.functional import similarity
from cse_core.parts import NegativeStore, Setup
from cse_core.types import Batch, Negatives, StepContext
from cse_distinct.options import DistinctOptions


def first_of_each(vectors: Tensor, threshold: float) -> Tensor:
    """Return ``[N]`` bool: rows of ``[N, D]`` not too near to an earlier row that is taken."""
    near = (similarity(vectors, vectors) > threshold).tril(-1).cpu()
    taken = torch.ones(len(vectors), dtype=torch.bool)
    for index in range(1, len(vectors)):
        taken[index] = not bool((near[index] & taken).any())
    return taken.to(vectors.device)


class Distinct(NegativeStore):
    """Keeps the vectors of earlier steps, the newest first, none within ``threshold`` of another.

    A new vector takes the place of those that it is near to: with the older one kept, a store
    would hold on to vectors of an encoder long gone.
    """

    def __init__(self, options: DistinctOptions, setup: Setup) -> None:
        self.options = options
        self.name = setup.name
        self.vectors = torch.zeros(0, setup.dimension, device=setup.device)
        self.row = torch.zeros(0, dtype=torch.long, device=setup.device)
        self.age = torch.zeros(0, dtype=torch.long, device=setup.device)

    def candidates(self, batch: Batch, ctx: StepContext) -> Negatives | None:
        """Return what is held, the same for every anchor; None before the first step."""
        if not len(self.row):
            return None
        return Negatives.of(
            self.vectors, len(batch.anchors), name=self.name, row=self.row, age=self.age
        )

    def after_step(self, batch: Batch, ctx: StepContext) -> None:
        """Take the step's vectors in and what they are near to out."""
        options = self.options
        new = ctx.vectors(options.view, options.branch)[batch.level].detach()
        new = new.take(first_of_each(new.vectors, options.threshold).nonzero().squeeze(1))
        near = (similarity(new.vectors, self.vectors) > options.threshold).any(dim=0)  # [N]
        stay = (~near).nonzero().squeeze(1)
        ctx.log(f"{self.name}.dropped", float(len(self.row) - len(stay)))
        stay = stay[: max(options.size - len(new.vectors), 0)]
        rows = batch.rows[new.owner]
        self.vectors = torch.cat([new.vectors, self.vectors[stay]])[: options.size]
        self.row = torch.cat([rows, self.row[stay]])[: options.size]
        self.age = torch.cat([torch.ones_like(rows), self.age[stay] + 1])[: options.size]

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return what is held."""
        return {"vectors": self.vectors, "row": self.row, "age": self.age}

    def load_state_dict(self, state: Mapping[str, Any], *args: Any, **kwargs: Any) -> None:
        """Hold what was saved."""
        self.vectors, self.row, self.age = state["vectors"], state["row"], state["age"]
