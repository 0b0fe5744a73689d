"""Parts that each break one promise."""

from __future__ import annotations

import os
import sys
from typing import Any

import torch
from torch import nn

from cse_core.parts import (
    Adapter,
    Augmenter,
    Head,
    Loss,
    Metric,
    NegativeStore,
    PositiveMiner,
)
from cse_core.types import LossOutput, Negatives, Positives, View


class _Made:
    def __init__(self, options: Any, setup: Any) -> None:
        self.options, self.setup = options, setup


class LosesText(_Made, Augmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return x[:-1]


class NoText(_Made, Augmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return [None for _ in x]


class DropsRow(_Made, Augmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return x.take_rows(torch.arange(x.rows - 1))


class Writes(_Made, Augmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        x.ids[~x.special] = 7
        return x


class Reshapes(_Made, Augmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return x[:-1]


class NotANumber(_Made, Augmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return x * float("nan") if ctx.step == 2 else x


class Raises(_Made, Augmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return {}["a key"]


class WideHead(nn.Module, Head):
    def __init__(self, options: Any, setup: Any) -> None:
        super().__init__()
        self.dimension = setup.dimension

    def forward(self, vectors: Any) -> Any:
        return torch.cat([vectors, vectors], dim=1)


class RaisingHead(WideHead):
    def forward(self, vectors: Any) -> Any:
        raise ValueError("no vectors\ntoday")


class FlatGroup(_Made, PositiveMiner):
    def mine(self, batch: Any, ctx: Any) -> Any:
        return {"flat-group": Positives(batch.anchors)}


class NoGroups(_Made, PositiveMiner):
    def mine(self, batch: Any, ctx: Any) -> Any:
        return [batch.anchors]


class ShortView(_Made, NegativeStore):
    def views(self, rows: Any, ctx: Any) -> Any:
        return [View("negative", "negative", "online", texts=ctx.texts("text")[1:])]


class FloatMask(_Made, NegativeStore):
    def candidates(self, batch: Any, ctx: Any) -> Any:
        rows = batch.anchors.detach()[:2]
        return Negatives.of(rows, len(batch.anchors), name="own",
                            mask=torch.zeros(len(batch.anchors), 2))  # fmt: skip


class ShortRows(_Made, NegativeStore):
    def candidates(self, batch: Any, ctx: Any) -> Any:
        rows = batch.anchors.detach()[:2]
        return Negatives.of(rows, len(batch.anchors), name="own", row=torch.zeros(1))


class KeepsGraph(_Made, NegativeStore):
    kept: Any = None

    def candidates(self, batch: Any, ctx: Any) -> Any:
        self.seen = batch.anchors * 2
        return None


class CannotBeMade(_Made, NegativeStore):
    def __init__(self, options: Any, setup: Any) -> None:
        raise LookupError("nothing to be made of")


class FailsLate(_Made, NegativeStore):
    def after_step(self, batch: Any, ctx: Any) -> None:
        if ctx.step == 1:
            raise AssertionError("step 1 is not to its liking")


class ExitsLate(_Made, NegativeStore):
    def after_step(self, batch: Any, ctx: Any) -> None:
        if ctx.step == 1:
            sys.exit(0)


class StateNoTable(_Made, NegativeStore):
    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return [1, 2]


class SparseState(_Made, NegativeStore):
    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return {"seen": torch.eye(3).to_sparse()}


class StateOfLambda(_Made, NegativeStore):
    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return {"deep": [{"seen": lambda: 1}]}


class NotesNoList(_Made, Loss):
    pass


class NotesRaise(_Made, Loss):
    pass


class DeriveRaises(_Made, Loss):
    pass


class DeriveOther(_Made, Loss):
    pass


class Nothing(_Made, Loss):
    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> Any:
        return None


class Signature(_Made, Loss):
    def __call__(self, batch: Any) -> Any:
        return LossOutput(batch.anchors.sum())


class NoLoss:
    def __init__(self, options: Any, setup: Any) -> None:
        pass


class PerAnchor(_Made, Loss):
    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> Any:
        return LossOutput((batch.anchors - targets.vectors[:, 0]).square().sum(dim=1))


class Detached(_Made, Loss):
    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> Any:
        return LossOutput((batch.anchors - targets.vectors[:, 0]).square().mean().detach())


class NanLoss(_Made, Loss):
    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> Any:
        return LossOutput((batch.anchors * 0).sum() / 0)


class _Unsayable(Exception):
    def __str__(self) -> str:
        return 1 / 0  # type: ignore[return-value]


def _raise(error: BaseException) -> Any:
    raise error


LOSSES = {
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


class Wrong(_Made, Loss):
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


class Uncounted(_Made, Metric):
    def compute(self, encode: Any, pairs: Any) -> Any:
        return None


class Rows:
    def rows(self) -> Any:
        raise ValueError("no rows today")
