"""The queue of earlier anchors that forgets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from cse_core.parts import NegativeStore, Setup
from cse_core.types import Batch, Negatives, StepContext
from cse_ifcl.options import HippocampusOptions


class Hippocampus(NegativeStore):
    """Holds the vectors of the last k batches; the older they are, the less they weigh.

    IFCL, Eq. 5 and Figure 3: row m, from the newest, has the coefficient
    ``p_m = 1 - lambda * ceil(m / N)``, which is added to its logit as ``log p_m``. With batches
    of N rows ceil(m / N) is the number of steps since m was stored, and so it is counted here:
    a shorter batch, or one of more segments, keeps its own number of rows. The newest batch
    already has 1 - lambda. A batch is stored after the loss, so in the first k steps there are
    fewer. It logs the trace of Figure 3: for each age how many rows have it, and their coefficient.
    """

    def __init__(self, options: HippocampusOptions, setup: Setup) -> None:
        self.options = options
        self.name = setup.name
        self.device = setup.device
        self.sizes: list[int] = []
        self.held: tuple[Tensor, Tensor] | None = None
        self.weights: tuple[Tensor, Tensor] | None = None

    def candidates(self, batch: Batch, ctx: StepContext) -> Negatives | None:
        """Return what is held, newest first."""
        if self.held is None or self.weights is None:
            return None
        (vectors, row), (log_weights, age) = self.held, self.weights
        for steps, count in enumerate(self.sizes, start=1):
            ctx.log(f"{self.name}.age{steps}.rows", count)
            ctx.log(f"{self.name}.age{steps}.weight", self._weight(steps))
        return Negatives.of(
            vectors,
            len(batch.anchors),
            name=self.name,
            log_weights=log_weights.expand(len(batch.anchors), -1),
            row=row,
            age=age,
        )

    def after_step(self, batch: Batch, ctx: StepContext) -> None:
        """Put the batch in front and let the oldest one go."""
        own = ctx.vectors(self.options.view, self.options.branch)[batch.level]
        vectors, row = own.vectors.detach(), batch.rows[own.owner]
        kept = self.sizes[: self.options.batches - 1]
        if self.held is not None:
            count = sum(kept)
            vectors = torch.cat([vectors, self.held[0][:count]])
            row = torch.cat([row, self.held[1][:count]])
        self._hold([len(own), *kept], vectors, row)

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the vectors ``[M, D]``, their corpus rows and the rows of each batch."""
        if self.held is None:
            return {"sizes": []}
        return {"sizes": list(self.sizes), "vectors": self.held[0], "row": self.held[1]}

    def load_state_dict(self, state: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Restore what was held."""
        self.sizes, self.held, self.weights = [], None, None
        if state["sizes"]:
            vectors, row = (state[name].to(self.device) for name in ("vectors", "row"))
            self._hold(list(state["sizes"]), vectors, row)

    def _weight(self, age: int) -> float:
        """Return the coefficient of rows that were stored so many steps ago."""
        return 1 - self.options.forgetting * age

    def _hold(self, sizes: list[int], vectors: Tensor, row: Tensor) -> None:
        """Keep rows and work out their weights, once for all steps that read them."""
        self.sizes, self.held = sizes, (vectors, row)
        ages = range(1, len(sizes) + 1)
        logs = [math.log(self._weight(age)) for age in ages]
        counts = torch.tensor(sizes)
        log_weights, age = (
            each.repeat_interleave(counts).to(vectors.device, non_blocking=True)
            for each in (torch.tensor(logs, dtype=vectors.dtype), torch.tensor(list(ages)))
        )
        self.weights = log_weights, age
