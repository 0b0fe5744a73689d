"""The queue of earlier anchors that forgets."""

from __future__ import annotations

import math

import torch

from cse_core.memory import Fifo
from cse_core.parts import NegativeStore, Setup
from cse_core.types import Batch, Negatives, StepContext
from cse_ifcl.options import HippocampusOptions


class Hippocampus(NegativeStore):
    """Holds the vectors of the last k batches; the older they are, the less they weigh.

    IFCL, Eq. 4 and Figure 3: row m, from the newest, has the coefficient
    ``p_m = 1 - lambda * ceil(m / N)``, which is added to its logit as ``log p_m``. With batches
    of N rows ceil(m / N) is the number of steps since m was stored, and so it is counted here:
    a shorter batch, or one of more segments, keeps its own number of rows. The newest batch
    already has 1 - lambda. A batch is stored after the loss, so in the first k steps there are
    fewer. It logs the trace of Figure 3: for each age how many rows have it, and their coefficient.
    """

    remembers = ("queue", "sizes")

    def __init__(self, options: HippocampusOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.queue = Fifo(newest_first=True)
        self.sizes: list[int] = []

    def candidates(self, batch: Batch, ctx: StepContext) -> Negatives | None:
        """Return the stored vectors, newest first."""
        kept = self.queue.held
        if kept is None:
            return None
        for steps, count in enumerate(self.sizes, start=1):
            ctx.log(f"{self.name}.age{steps}.rows", count)
            ctx.log(f"{self.name}.age{steps}.weight", self._weight(steps))
        ages = range(1, len(self.sizes) + 1)
        logs = torch.tensor([math.log(self._weight(age)) for age in ages], dtype=kept.vectors.dtype)
        log_weights = logs.to(kept.age.device, non_blocking=True)[kept.age - 1]
        count = len(batch.anchors)
        log_weights = log_weights.expand(count, -1)
        return kept.negatives(
            count, name=self.name, view=self.options.view, log_weights=log_weights
        )

    def after_step(self, batch: Batch, ctx: StepContext) -> None:
        """Put the batch in front and let the oldest one go."""
        rows = ctx.vectors(self.options.view, self.options.branch)[batch.level]
        kept = self.sizes[: self.options.batches - 1]
        self.sizes = [len(rows), *kept]
        beside = ctx.beside(self.options.view, rows)
        self.queue.push(rows.vectors, batch.rows[rows.owner], sum(self.sizes), beside)

    def _weight(self, age: int) -> float:
        """Return the coefficient of rows that were stored so many steps ago."""
        return 1 - self.options.forgetting * age
