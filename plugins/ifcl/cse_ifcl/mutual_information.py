"""Mutual information of twins, and of sentences that mean the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from cse_core.functional import similarity
from cse_core.parts import Metric, Setup
from cse_core.types import Batch, StepContext
from cse_ifcl.options import MutualInformationOptions


class MutualInformation(Metric):
    """A lower bound of the mutual information of two vectors: IFCL, Eq. 10 and Table 4.

    ``log N + mean_i log( exp(cos(h_i, h'_i) / t) / sum_j exp(cos(h_i, h'_j) / t) )`` in nats. It
    cannot exceed log N, so every estimate comes with its N, and only those of one N compare.

    - ``identical`` and ``fraternal``: an anchor and its twin, over the last ``rows`` rows of
      training, with the dropout of training; there in training alone, where the views are.
    - ``task``: the two sentences of the pairs with the highest score, by the model as it is saved.
    """

    def __init__(self, options: MutualInformationOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.device = setup.device
        self.held: dict[str, tuple[Tensor, Tensor]] = {}

    def after_step(self, batch: Batch, ctx: StepContext) -> None:
        """Keep the last anchors and their twins."""
        views = {"identical": self.options.identical, "fraternal": self.options.fraternal}
        for twin, view in views.items():
            if view not in batch.targets:
                continue
            new = (batch.anchors, batch.targets[view].vectors[:, 0])
            old = self.held.get(twin)
            if old is not None:
                new = (torch.cat([new[0], old[0]]), torch.cat([new[1], old[1]]))
            self.held[twin] = (new[0][: self.options.rows], new[1][: self.options.rows])

    def compute(self, encode: Callable[[Sequence[str]], Any], pairs: Any) -> dict[str, float]:
        """Return the estimates that there are data for, and the N of each."""
        numbers: dict[str, float] = {}
        for twin, (anchors, others) in self.held.items():
            numbers[twin] = self._information(anchors, others)
            numbers[f"{twin}_n"] = float(len(anchors))
        gold = pairs.scale[1] if self.options.gold is None else self.options.gold
        same = [pair for pair in pairs.pairs if pair.score >= gold]
        if same:
            first, second = (
                torch.from_numpy(encode([getattr(pair, name) for pair in same]))
                for name in ("sentence1", "sentence2")
            )
            numbers["task"] = self._information(first, second)
        numbers["task_n"] = float(len(same))
        return numbers

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the kept vectors of each kind of twin."""
        return {
            f"{twin}.{side}": vectors
            for twin, pair in self.held.items()
            for side, vectors in zip(("anchor", "twin"), pair, strict=True)
        }

    def load_state_dict(self, state: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Restore the kept vectors."""
        self.held = {
            twin: (state[f"{twin}.anchor"].to(self.device), state[f"{twin}.twin"].to(self.device))
            for twin in ("identical", "fraternal")
            if f"{twin}.anchor" in state
        }

    def _information(self, anchors: Tensor, others: Tensor) -> float:
        logits = similarity(anchors.double(), others.double()) / self.options.temperature
        return math.log(len(logits)) + float(logits.log_softmax(dim=1).diagonal().mean())
