"""Parts that each break one promise."""

import os
import sys
from typing import Any

import numpy as np
import torch
from torch import nn

from cse_core.memory import Fifo
from cse_core.parts import (
    Adapter,
    Augmenter,
    Head,
    Loss,
    Metric,
    NegativeStore,
    PositiveMiner,
    RowPooler,
)
from cse_core.types import LossOutput, Negatives, Positives, Round, View


def _write(x: Any) -> Any:
    x.ids[~x.special] = 7
    return x


AUGMENTERS = {
    "loses-text": lambda x, ctx: x[:-1],
    "no-text": lambda x, ctx: [None for _ in x],
    "drops-row": lambda x, ctx: x.take_rows(torch.arange(x.rows - 1)),
    "writes": lambda x, ctx: _write(x),
    "writes-late": lambda x, ctx: _write(x) if ctx.step else x,
    "reshapes": lambda x, ctx: x[:-1],
    "not-a-number": lambda x, ctx: x * float("nan") if ctx.step == 2 else x,
    "raises": lambda x, ctx: {}["a key"],
}


def over(start: float, end: float, done: float) -> float:
    return start + (end - start) * done * 1.5


class Changed(Augmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return AUGMENTERS[self.name](x, ctx)


class WideHead(nn.Module, Head):
    def __init__(self, options: Any, setup: Any) -> None:
        super().__init__()
        self.dimension = setup.dimension

    def forward(self, vectors: Any) -> Any:
        return torch.cat([vectors, vectors], dim=1)


class RaisingHead(WideHead):
    def forward(self, vectors: Any) -> Any:
        raise ValueError("no vectors\ntoday")


GROUPS = {
    "flat-group": lambda batch: {"flat-group": Positives(batch.anchors)},
    "no-groups": lambda batch: [batch.anchors],
}


class Grouped(PositiveMiner):
    def mine(self, batch: Any, ctx: Any) -> Any:
        return GROUPS[self.name](batch)


PAIRS = {"text": np.arange(8), "positive": np.arange(8)}
ROUNDS = {
    "no-text": {"pairs": {"positive": np.arange(8)}},
    "own-texts": {"pairs": {"text": ["a", "b"], "positive": ["c", "d"]}},
    "two-lengths": {"pairs": {**PAIRS, "positive": np.arange(7)}},
    "row-below": {"pairs": {**PAIRS, "positive": np.arange(8) - 1}},
    "row-above": {"pairs": {**PAIRS, "positive": np.arange(8) + 10**6}},
    "float-rows": {"pairs": {**PAIRS, "positive": np.arange(8) / 2}},
    "no-texts": {"pairs": {**PAIRS, "positive": ["a"] * 7 + [None]}},
    "no-loss": {"losses": ("infonse",)},
    "without-loss": {"losses": ()},
    "no-option": {"train": {"step": 3}},
    "no-patience": {"train": {"patience": "3 bananas"}},
    "over": {"keep_schedule": True},
}


class Rounds(PositiveMiner):
    def next_round(self, ctx: Any) -> Any:
        return Round(**{"pairs": PAIRS, **ROUNDS[self.options.how]})  # type: ignore[arg-type]


class Remembers(RowPooler):
    remembers = ("weights",)
    weights = None


class ShortView(NegativeStore):
    def views(self, rows: Any, ctx: Any) -> Any:
        return [View("negative", "negative", "online", texts=ctx.texts("text")[1:])]


CANDIDATES = {
    "float-mask": lambda anchors: {"mask": torch.zeros(anchors, 2)},
    "short-rows": lambda anchors: {"row": torch.zeros(1)},
}


class Misfits(NegativeStore):
    def candidates(self, batch: Any, ctx: Any) -> Any:
        anchors = len(batch.anchors)
        wrong = CANDIDATES[self.name](anchors)
        return Negatives.of(batch.anchors.detach()[:2], anchors, name="own", **wrong)


class KeepsGraph(NegativeStore):
    kept: Any = None

    def candidates(self, batch: Any, ctx: Any) -> Any:
        self.seen = batch.anchors * 2
        return None


class CannotBeMade(NegativeStore):
    def __init__(self, options: Any, setup: Any) -> None:
        raise LookupError("nothing to be made of")


class EndsLate(NegativeStore):
    def after_step(self, batch: Any, ctx: Any) -> None:
        if ctx.step == 1 and self.name == "exits-late":
            sys.exit(0)
        assert ctx.step != 1, "step 1 is not to its liking"


STATES = {
    "state-no-table": lambda: [1, 2],
    "sparse-state": lambda: {"seen": torch.eye(3).to_sparse()},
    "state-of-lambda": lambda: {"deep": [{"seen": lambda: 1}]},
}


class Stateful(NegativeStore):
    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return STATES[self.name]()


class OfWrongRecord(Loss):
    pass


class TwoStates(Loss):
    remembers = ("one", "two")

    def __init__(self, options: Any, setup: Any) -> None:
        self.one, self.two = Fifo(), Fifo()


class ModuleRemembers(nn.Module, Loss):
    remembers = ("seen",)

    def __init__(self, options: Any, setup: Any) -> None:
        super().__init__()


class HoldsLayer(Loss):
    def __init__(self, options: Any, setup: Any) -> None:
        self.layer = nn.Linear(2, 2)


class Signature(Loss):
    def __call__(self, batch: Any) -> Any:
        return LossOutput(batch.anchors.sum())


class NoLoss:
    def __init__(self, options: Any, setup: Any) -> None:
        pass


class _Unsayable(Exception):
    def __str__(self) -> str:
        return 1 / 0  # type: ignore[return-value]


def _raise(error: BaseException) -> Any:
    raise error


LOSSES = {
    "nothing": lambda value, ctx: None,
    "per-anchor": lambda value, ctx: LossOutput(value.expand(8)),
    "detached": lambda value, ctx: LossOutput(value.detach()),
    "not-finite": lambda value, ctx: LossOutput(value * 0 / 0),
    "complex": lambda value, ctx: LossOutput(value.to(torch.complex64)),
    "meta": lambda value, ctx: LossOutput(value.to("meta")),
    "list-of-parts": lambda value, ctx: LossOutput(value, [1]),
    "text-as-part": lambda value, ctx: LossOutput(value, {"gap": "wide"}),
    "logs-vector": lambda value, ctx: ctx.log("wrong.all", torch.ones(3)),
    "logs-text": lambda value, ctx: ctx.log("wrong.text", "hello"),
    "logs-loss": lambda value, ctx: ctx.log("loss", 1.0),
    "logs-nan": lambda value, ctx: ctx.log("wrong.gap", value * float("nan")) or LossOutput(value),
    "gradients-off": lambda value, ctx: torch.set_grad_enabled(False) and None,
    "interrupts": lambda value, ctx: _raise(KeyboardInterrupt()),
    "generator-exit": lambda value, ctx: _raise(GeneratorExit()),
    "unsayable": lambda value, ctx: _raise(_Unsayable()),
    "moves": lambda value, ctx: os.chdir("/") or LossOutput(value),
}
HEADS = {
    "detaches": lambda vectors: vectors.detach(),
    "numpy": lambda vectors: torch.from_numpy(vectors.detach().numpy()),
    "zeros": lambda vectors: vectors * 0,
    "tuple": lambda vectors: (vectors, vectors),
    "none": lambda vectors: None,
    "complex": lambda vectors: vectors.to(torch.complex64),
}


class Wrong(Loss):
    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> Any:
        value = 1 - torch.cosine_similarity(batch.anchors, targets.vectors[:, 0]).mean()
        return LOSSES[self.options.how](value, ctx)


class Bent(WideHead):
    def __init__(self, options: Any, setup: Any) -> None:
        super().__init__(options, setup)
        self.how = options.how

    def forward(self, vectors: Any) -> Any:
        return HEADS[self.how](vectors)


class Frozen(Adapter):
    def wrap(self, model: Any) -> None:
        model.requires_grad_(False)


class Uncounted(Metric):
    def compute(self, encode: Any, pairs: Any) -> Any:
        return None


class Rows:
    def rows(self, name: str, wanted: Any) -> Any:
        raise ValueError("no rows today")
