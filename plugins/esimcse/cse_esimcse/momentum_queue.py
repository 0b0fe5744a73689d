"""A queue of vectors that a moving average of the encoder made."""

from __future__ import annotations

from cse_core.memory import Fifo
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

    remembers = ("queue",)

    def __init__(self, options: MomentumQueueOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.queue = Fifo()

    def candidates(self, batch: Batch, ctx: StepContext) -> Negatives | None:
        """Return all that it holds; None before the first step has left something."""
        keys = self.queue.held
        if not keys:
            return None
        return keys.negatives(len(batch.anchors), name=self.name, view=self.options.view)

    def after_step(self, batch: Batch, ctx: StepContext) -> None:
        """Append this step's vectors and let the oldest go."""
        new = ctx.vectors(self.options.view, self.options.branch)[self.options.level]
        beside = ctx.beside(self.options.view, new)
        self.queue.push(new.vectors, batch.rows[new.owner], self.options.size, beside)
