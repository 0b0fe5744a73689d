"""Parts of every shape that keep every promise: what the kit must let pass."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from cse_core.encoders.dropout import Dropout
from cse_core.options import AugmenterOptions, LossOptions, MinerOptions, StoreOptions
from cse_core.parts import Augmenter, Branch, Loss, NegativeStore, PositiveMiner
from cse_core.records import AugmenterSpec, BranchSpec, LossSpec, MinerSpec, Record, StoreSpec
from cse_core.types import LossOutput, Negatives, Positives, View

HERE = __name__


class NudgeOptions(AugmenterOptions):
    gradient: Literal["fresh", "previous"] = "fresh"
    """Which gradient it follows."""


class Nudge(Augmenter):
    """Moves word embeddings along the sign of their gradient."""

    def __init__(self, options: NudgeOptions, setup: Any) -> None:
        self.options = options

    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        gradient = ctx.gradient(view, tokens)
        return x if gradient is None else x + 0.05 * gradient.sign()


class Cutoff(Augmenter):
    """Puts a fifth of what enters the first layer to zero."""

    def __init__(self, options: AugmenterOptions, setup: Any) -> None:
        self.options = options

    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        draws = ctx.generator(f"{self.name} {view.name}", shared=False)
        kept = torch.rand(x.shape[1], generator=draws) > 0.2
        return x * kept


class Deny(Augmenter):
    """Adds a view of soft negatives: the batch's texts, denied."""

    def __init__(self, options: AugmenterOptions, setup: Any) -> None:
        self.options = options

    def views(self, rows: Tensor, ctx: Any) -> list[View]:
        texts = [f"It is not: {text}" for text in ctx.texts("text")]
        return [View("soft_negative", "soft_negative", "online", texts=texts)]

    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return [text.replace(".", "!") for text in x]


def cosine(one: Tensor, other: Tensor) -> Tensor:
    return functional.cosine_similarity(one, other, dim=-1)


def of_anchors(batch: Any, view: str, level: str) -> Tensor:
    """Return the vectors of a view with one row a sentence in the order of the anchors."""
    rows = batch.views[view][level]
    place = (batch.owner.unsqueeze(1) == rows.owner.unsqueeze(0)).long().argmax(dim=1)
    return rows.vectors[place]


def reduced(terms: Tensor, options: Any) -> Tensor:
    return terms.sum() if options.reduction == "sum" else terms.mean()


class Margin(Loss):
    """Pulls identical views, keeps soft negatives at the distance that the inputs have."""

    def __init__(self, options: LossOptions, setup: Any) -> None:
        self.options = options

    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> LossOutput:
        identical = cosine(batch.anchors, batch.targets["identical"].vectors[:, 0])
        soft = cosine(batch.anchors, of_anchors(batch, "soft_negative", batch.level))
        inputs = [of_anchors(batch, name, "input") for name in ("anchor", "soft_negative")]
        allowed = cosine(*inputs).to(soft.dtype)
        terms = (1 - identical) + (soft - allowed).clamp_min(0)
        return LossOutput(reduced(terms, self.options), {"soft": soft.mean()})


class Learned(nn.Module, Loss):
    """A logistic loss whose scale is trained with the encoder."""

    def __init__(self, options: LossOptions, setup: Any) -> None:
        super().__init__()
        self.options = options
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> LossOutput:
        scale = self.scale.to(batch.anchors.dtype)
        close = cosine(batch.anchors.unsqueeze(1), targets.vectors)
        weights = torch.ones_like(close) if targets.weights is None else targets.weights
        pulled = (functional.softplus(-scale * close) * weights).sum(dim=1)
        others = (
            functional.normalize(batch.anchors, dim=-1)
            @ functional.normalize(negatives.vectors, dim=-1).T
        )
        there = ~negatives.mask * negatives.log_weights.exp()
        pushed = (functional.softplus(scale * others) * there).sum(dim=1)
        return LossOutput(reduced(pulled + pushed, self.options))


class Memory(PositiveMiner):
    """Finds the nearest of the last sixteen positives, once there are any."""

    def __init__(self, options: MinerOptions, setup: Any) -> None:
        self.options = options
        self.kept = torch.zeros(0, setup.dimension)
        self.filled = 0

    def mine(self, batch: Any, ctx: Any) -> dict[str, Positives]:
        if not len(self.kept):
            return {}
        nearest = (batch.anchors.detach() @ self.kept.T).argmax(dim=1)
        return {"memory": Positives(self.kept[nearest].unsqueeze(1))}

    def after_step(self, batch: Any, ctx: Any) -> None:
        self.kept = torch.cat([self.kept, batch.targets["positive"].vectors[:, 0]])[-16:]
        self.filled += len(batch.anchors)

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {"kept": self.kept, "filled": self.filled}

    def load_state_dict(self, state: Any, *args: Any, **kwargs: Any) -> None:
        self.kept, self.filled = state["kept"], state["filled"]


class FrozenOptions(StoreOptions):
    branch: str | None = "frozen"
    """Branch whose vectors it weighs by."""


class FrozenWeights(NegativeStore):
    """Gives no weight to negatives that a frozen branch finds close, and adds noise."""

    def __init__(self, options: FrozenOptions, setup: Any) -> None:
        self.options = options

    def candidates(self, batch: Any, ctx: Any) -> Negatives:
        noise = torch.randn(5, batch.anchors.shape[1], generator=ctx.generator(self.name))
        return Negatives.of(noise.to(batch.anchors), len(batch.anchors), name=self.name)

    def weigh(self, negatives: Any, batch: Any, ctx: Any) -> Negatives:
        frozen = ctx.vectors("positive", "frozen")[batch.level].vectors
        start, logs = 0, negatives.log_weights.clone()
        for name, count in negatives.blocks:
            if name == "in-batch" and count == len(frozen):
                close = cosine(frozen.unsqueeze(1), frozen.unsqueeze(0)) > 0.9
                logs[:, start : start + count].masked_fill_(close, -torch.inf)
            start += count
        return Negatives(
            negatives.vectors, negatives.mask, logs, negatives.row, negatives.age, negatives.blocks
        )


class Twin(nn.Module, Branch):
    """A second encoder that trains beside the online one, with more dropout of its own."""

    def __init__(self, options: Any, setup: Any) -> None:
        super().__init__()
        self.encoder = setup.online_encoder().copy()
        self.heads = {}
        for module in self.encoder.modules():
            if isinstance(module, Dropout):
                module.p = 0.3


RECORDS: list[Record] = [
    BranchSpec(
        name="twin", summary="made up", factory=f"{HERE}:Twin", provides=("branch:twin",),
        trainable=True,
    ),
    AugmenterSpec(
        name="nudge", summary="made up", factory=f"{HERE}:Nudge", options=NudgeOptions,
        point="word_embeddings", gradient=lambda options: options.gradient,
        requires=("gradient:inputs",),
    ),
    AugmenterSpec(
        name="cutoff", summary="made up", factory=f"{HERE}:Cutoff", point="input_embeddings"
    ),
    AugmenterSpec(
        name="deny", summary="made up", factory=f"{HERE}:Deny", point="text",
        views=("soft_negative",), provides=("view:soft_negative",),
    ),
    LossSpec(
        name="innate", summary="made up", factory=f"{HERE}:Margin", contrastive=False,
        requires=("view:identical", ("view:soft_negative", "view:other"), "level:input"),
    ),
    LossSpec(name="learned", summary="made up", factory=f"{HERE}:Learned"),
    MinerSpec(
        name="memory", summary="made up", factory=f"{HERE}:Memory",
        provides=("positives:memory",),
    ),
    StoreSpec(
        name="frozen-weights", summary="made up", factory=f"{HERE}:FrozenWeights",
        options=FrozenOptions, requires=("branch:frozen",),
    ),
]  # fmt: skip
