"""A queue of keys: negatives from earlier steps, encoded by a branch that lags behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from cse_core.errors import CseError
from cse_core.functional import unit
from cse_core.parts import NegativeStore, Setup
from cse_core.types import Batch, Negatives, StepContext, View
from cse_mocose.growth import Growth
from cse_mocose.options import QueueOptions

QUEUED = "queued"
"""View of the texts that ``update = latest`` encodes again."""


@dataclass(frozen=True)
class Keys:
    """Keys, newest first; those of one step in the order of its batch.

    Attributes:
        vectors: ``[N, D]``, not normalised.
        row: ``[N]`` corpus rows, -1 for random ones.
        age: ``[N]`` steps since they were stored.
    """

    vectors: Tensor
    row: Tensor
    age: Tensor

    def part(self, start: int, stop: int) -> Keys:
        """Return the keys from ``start`` up to ``stop``."""
        return Keys(self.vectors[start:stop], self.row[start:stop], self.age[start:stop])


class Front:
    """Rows of a tensor with room before them, so that adding some moves the others seldom.

    What was returned before never changes: rows are written only where nothing was.
    """

    def __init__(self) -> None:
        self._rows: Tensor | None = None
        self._start = 0

    def put(self, new: Tensor, held: Tensor, kept: int) -> Tensor:
        """Return ``[kept, D]``: the new rows, and behind them the first of those held."""
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
        self.options = options
        self.name = setup.name
        self.growth = Growth.of(options)
        if options.level != "input":
            self._check_dimension(setup.dimension)
        self.keys: Keys | None = None
        self._front = Front()
        self.entered = 0
        self.texts: list[str] = []

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
        seen = keys.part(*self.growth.window(len(keys.row), self.entered))
        if not len(seen.row):
            return None
        return Negatives.of(
            seen.vectors, len(batch.anchors), name=self.name, row=seen.row, age=seen.age
        )

    def after_step(self, batch: Batch, ctx: StepContext) -> None:
        """Put this step's keys in front, and let the oldest go."""
        held = self._held(batch, ctx)
        options = self.options
        new = ctx.vectors(options.view, options.branch)[options.level]
        self.entered += len(new)
        kept = self.growth.kept(len(held.row) + len(new), self.entered, len(new))
        self.keys = Keys(
            self._front.put(new.vectors.to(held.vectors.dtype), held.vectors, kept),
            torch.cat([batch.rows[new.owner], held.row])[:kept],
            torch.cat([torch.zeros_like(new.owner), held.age])[:kept] + 1,
        )
        if options.update == "latest":
            texts = ctx.texts(options.column or "text")
            self.texts = [*(texts[i] for i in new.owner.tolist()), *self.texts][:kept]

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the keys, how many ever entered, and their texts."""
        if self.keys is None:
            return {}
        state: dict[str, Any] = {
            "vectors": self.keys.vectors,
            "row": self.keys.row,
            "age": self.keys.age,
            "entered": self.entered,
        }
        return {**state, "texts": self.texts} if self.options.update == "latest" else state

    def load_state_dict(self, state: Mapping[str, Any], *args: Any, **kwargs: Any) -> None:
        """Restore what ``state_dict`` returned."""
        if "vectors" in state:
            self.keys = Keys(state["vectors"], state["row"], state["age"])
            self.entered = int(state["entered"])
            self.texts = list(state.get("texts", ()))

    def _held(self, batch: Batch, ctx: StepContext) -> Keys:
        """Return what it holds; before the first step's end the random rows, drawn again."""
        if self.keys is not None:
            return self.keys
        count, like = self.growth.drawn, batch.anchors
        drawn = torch.zeros(count, like.shape[1], dtype=like.dtype)
        if count:
            drawn.normal_(generator=ctx.generator(f"{self.name}.first-fill"))
        row = torch.full((count,), -1, device=like.device)
        return Keys(unit(drawn).to(like.device), row, torch.zeros_like(row))

    def _encoded_again(self, keys: Keys, batch: Batch, size: int) -> Keys:
        """Return the keys with the vectors of this step; random rows are as they were."""
        found = batch.views.get(QUEUED, {}).get(self.options.level)
        if found is None:
            return keys
        if len(found) != len(self.texts):
            raise RuntimeError(f"{self.name} got {len(found)} vectors of {len(self.texts)} texts")
        # Key k is text k // size of batch row k % size, and a row's slots count its texts.
        order = torch.argsort(found.slot * size + found.owner)
        vectors = found.vectors.detach().to(keys.vectors.dtype)[order]
        return Keys(torch.cat([vectors, keys.vectors[len(found) :]]), keys.row, keys.age)

    def _check_dimension(self, found: int) -> None:
        if self.options.dimension not in (None, found):
            raise CseError(
                f"the run's vectors have {found} dimensions",
                where=f"negatives.{self.name}.dimension",
                value=self.options.dimension,
                hint=f"set it to {found}, or the heads' dimension to {self.options.dimension}",
            )
