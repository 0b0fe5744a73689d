"""A queue of keys: negatives from earlier steps, encoded by a branch that lags behind."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from cse_core.functional import unit
from cse_core.memory import Fifo, Held
from cse_core.parts import NegativeStore, Setup
from cse_core.types import Batch, Negatives, StepContext, View
from cse_mocose.distance import Growth
from cse_mocose.options import QueueOptions

QUEUED = "queued"
"""View of the texts that ``update = latest`` encodes again."""


class Queue(NegativeStore):
    """Keys of earlier steps as negatives (MoCo; MoCoSE, Eq. 3 and Tables 7 and 8).

    The loss of a step is computed before its keys enter. Keys are a view's vectors by a branch,
    detached, as they are: a loss with cosine similarity normalises them, as the authors' code does.
    It begins with random unit rows, and ``Growth`` says how it fills. With ``update = latest``
    the texts of all keys are encoded again in each step, by the branch as it is (Table 8); random
    rows stay as they are. The same sentence may be in it: losses mask it by its corpus row, with
    ``same_text = keep`` they do not, as in the authors' code.
    """

    def __init__(self, options: QueueOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.growth = Growth.of(options)
        self.keys = Fifo(newest_first=True)
        self.entered = 0
        self.texts: list[str] = []
        latest = options.update == "latest"
        self.remembers = ("keys", "entered", "texts") if latest else ("keys", "entered")

    def views(self, rows: Tensor, ctx: StepContext) -> list[View]:
        """Return the texts of the keys, dealt out over the batch's rows, for ``latest``.

        Key k goes with batch row ``k % B``, so that chunks and processes share the work.
        """
        if self.options.update != "latest" or not self.texts:
            return []
        size, mine = len(ctx.rows), len(rows)
        first = 0
        if 0 < mine < size:  # one of several processes, which finds its place by its rows
            same = (ctx.rows.unfold(0, mine, 1) == rows).all(dim=1)
            first = int(same.int().argmax())
        places = [k for k in range(len(self.texts)) if first <= k % size < first + mine]
        return [
            View(
                QUEUED,
                "aux",
                "online",
                texts=[self.texts[k] for k in places],
                owner=torch.tensor([k % size - first for k in places], dtype=torch.long),
            )
        ]

    def candidates(self, batch: Batch, ctx: StepContext) -> Negatives | None:
        """Return the keys that this step's losses see, newest first."""
        keys = self._held(batch, ctx)
        if self.options.update == "latest":
            keys = self._encoded_again(keys, batch, len(ctx.rows))
        seen = keys.part(*self.growth.window(len(keys), self.entered))
        if not len(seen):
            return None
        return seen.negatives(len(batch.anchors), name=self.name, view=self.options.view)

    def after_step(self, batch: Batch, ctx: StepContext) -> None:
        """Put this step's keys in front, and let the oldest go."""
        self.keys.held = before = self._held(batch, ctx)
        options = self.options
        new = ctx.vectors(options.view, options.branch)[options.level]
        self.entered += len(new)
        kept = self.growth.kept(len(before) + len(new), self.entered, len(new))
        beside = ctx.beside(options.view, new)
        self.keys.push(new.vectors, batch.rows[new.owner], kept, beside)
        if options.update == "latest":
            texts = ctx.texts(options.column or "text")
            self.texts = [*(texts[i] for i in new.owner.tolist()), *self.texts][:kept]

    def _held(self, batch: Batch, ctx: StepContext) -> Held:
        """Return the stored keys; before the first step's end the random rows, drawn again."""
        if self.keys.held is not None:
            return self.keys.held
        count, like = self.growth.drawn, batch.anchors
        drawn = torch.zeros(count, like.shape[1], dtype=like.dtype)
        if count:
            drawn.normal_(generator=ctx.generator(f"{self.name}.first-fill"))
        row = torch.full((count,), -1, device=like.device)
        return Held(unit(drawn).to(like.device), row, torch.zeros_like(row))

    def _encoded_again(self, keys: Held, batch: Batch, size: int) -> Held:
        """Return the keys with the vectors of this step; random rows are as they were."""
        encoded = batch.views.get(QUEUED, {}).get(self.options.level)
        if encoded is None:
            return keys
        if len(encoded) != len(self.texts):
            raise RuntimeError(f"{self.name} got {len(encoded)} vectors of {len(self.texts)} texts")
        # Key k is text k // size of batch row k % size, and a row's slots count its texts.
        order = torch.argsort(encoded.slot * size + encoded.owner)
        vectors = encoded.vectors.detach().to(keys.vectors.dtype)[order]
        return replace(keys, vectors=torch.cat([vectors, keys.vectors[len(encoded) :]]))
