"""More parts that each break one promise: mistakes that authors make and that trained on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from cse_core.options import BranchOptions, LossOptions
from cse_core.parts import Augmenter, Branch, Head, Loss, NegativeStore
from cse_core.records import (
    AugmenterSpec,
    BranchSpec,
    HeadSpec,
    LossSpec,
    Record,
    StoreSpec,
)
from cse_core.types import LossOutput, Negatives, TokenBatch, View

HERE = __name__


class Made:
    def __init__(self, options: Any, setup: Any) -> None:
        self.options, self.setup = options, setup


def cosines(one: Tensor, other: Tensor) -> Tensor:
    return functional.normalize(one, dim=-1) @ functional.normalize(other, dim=-1).T


# Augmenters


class TextsTurned(Made, Augmenter):
    """Returns the texts of the batch in another order."""

    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return list(reversed(x))


class IdsTurned(Made, Augmenter):
    """Puts the ids of a row in another order, and leaves ``source`` and ``word``."""

    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        ids = x.ids.clone()
        for row in range(x.rows):
            start, stop = int(x.offsets[row]) + 1, int(x.offsets[row + 1]) - 1
            ids[start:stop] = ids[start:stop].flip(0)
        return replace(x, ids=ids)


class RowsTurned(Made, Augmenter):
    """Takes the rows in another order, and writes the owners that are asked for over theirs."""

    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return replace(x.take_rows(torch.arange(x.rows).flip(0)), owner=x.owner, slot=x.slot)


class WordsCounted(Made, Augmenter):
    """Drops the first content token and counts the words that are left from 0 again."""

    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        first = torch.zeros_like(x.special)
        for row in range(x.rows):
            start, stop = int(x.offsets[row]), int(x.offsets[row + 1])
            content = [t for t in range(start, stop) if not bool(x.special[t])]
            first[content[:1] if len(content) > 1 else []] = True
        kept: TokenBatch = x.keep_tokens(~first)
        return replace(kept, word=torch.where(kept.special, kept.word, kept.word - 1))


class NormOfBatch(Made, Augmenter):
    """Scales by a norm over all rows of a call."""

    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return x / x.detach().norm().clamp_min(1e-6) * x.shape[0] ** 0.5


class SharedDraws(Made, Augmenter):
    """Draws for its own texts what every process draws."""

    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        draws = torch.rand(len(x), generator=ctx.generator("words"))
        return [t.upper() if float(d) < 0.5 else t for t, d in zip(x, draws, strict=True)]


class UnsaidView(Made, Augmenter):
    """Adds a view of which its record says nothing."""

    def views(self, rows: Any, ctx: Any) -> list[View]:
        return [View("aux", "aux", "online", texts=ctx.texts("text"))]

    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return [f"{text} indeed" for text in x]


class OwnersOfCorpus(UnsaidView):
    """Gives its view the corpus rows as owners."""

    def views(self, rows: Any, ctx: Any) -> list[View]:
        return [View("aux", "aux", "online", texts=ctx.texts("text"), owner=rows + 4)]


class InPlaceStates(Made, Augmenter):
    """Writes into the embeddings that it is given."""

    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        with torch.no_grad():
            x.mul_(1.1)
        return x


# Branches


class OwnCopy(Branch):
    """A trained branch that is not a module: the optimiser never sees its copy."""

    def __init__(self, options: BranchOptions, setup: Any) -> None:
        self.encoder = setup.online_encoder().copy()
        self.heads = setup.heads


class NoDropout(Branch):
    """Switches the dropout of the online encoder off, meaning its own."""

    def __init__(self, options: BranchOptions, setup: Any) -> None:
        online = setup.online_encoder()
        self.encoder, self.heads = online.copy(), {}
        self.encoder.requires_grad_(False)
        for module in online.modules():
            if hasattr(module, "p"):
                module.p = 0.0


# Losses


class Base(Made, Loss):
    """InfoNCE in its plain form, with everything that the options ask for."""

    options: LossOptions

    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> Any:
        return LossOutput(self.reduced(self.terms(batch, targets, negatives)))

    def terms(self, batch: Any, targets: Any, negatives: Any) -> Tensor:
        anchors = functional.normalize(batch.anchors, dim=-1).unsqueeze(1)
        close = (anchors * functional.normalize(targets.vectors, dim=-1)).sum(-1)
        weights = self.weights(close, targets)
        there = ~negatives.mask * negatives.log_weights.exp()
        mass = (cosines(batch.anchors, negatives.vectors).exp() * there).sum(dim=1, keepdim=True)
        losses = (close.exp() + mass).log() - close
        return (losses * weights).sum(dim=1) / weights.sum(dim=1).clamp_min(1e-9)

    def weights(self, close: Tensor, targets: Any) -> Tensor:
        return torch.ones_like(close) if targets.weights is None else targets.weights

    def reduced(self, terms: Tensor) -> Tensor:
        return terms.sum() if self.options.reduction == "sum" else terms.mean()


class IgnoresTargetWeights(Base):
    def weights(self, close: Tensor, targets: Any) -> Tensor:
        return torch.ones_like(close)


class IgnoresReduction(Base):
    def reduced(self, terms: Tensor) -> Tensor:
        return terms.mean()


class Detached(Base):
    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> Any:
        return LossOutput(super().__call__(batch, targets, negatives, ctx).value.detach())


class NoGradient(Base):
    """Its value has a graph, through which nothing comes back."""

    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> Any:
        value = super().__call__(batch, targets, negatives, ctx).value
        return LossOutput(value.detach() + 0.0 * batch.anchors.sum())


class ReturnsNone(Base):
    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> Any:
        super().__call__(batch, targets, negatives, ctx)


class ReturnsTensor(Base):
    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> Any:
        return super().__call__(batch, targets, negatives, ctx).value


class OpensMask(Base):
    """Writes into the mask that it is given."""

    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> Any:
        negatives.mask[:, :1] = True
        return super().__call__(batch, targets, negatives, ctx)


class ScalesAnchors(Base):
    """Writes into the batch that it is given."""

    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> Any:
        with torch.no_grad():
            batch.anchors.div_(batch.anchors.norm(dim=-1, keepdim=True) + 1.0)
        return super().__call__(batch, targets, negatives, ctx)


class ByPosition(Base):
    """Takes the rows of a view for those of the anchors."""

    def terms(self, batch: Any, targets: Any, negatives: Any) -> Tensor:
        rows = batch.views["positive"][batch.level].vectors[: len(batch.anchors)]
        close = functional.cosine_similarity(batch.anchors[: len(rows)], rows)
        return super().terms(batch, targets, negatives) - close.mean()


class Unmoved(nn.Module, Loss):
    """Has a scale that its value does not depend on."""

    def __init__(self, options: LossOptions, setup: Any) -> None:
        super().__init__()
        self.base = Base(options, setup)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> LossOutput:
        value = self.base(batch, targets, negatives, ctx).value
        return LossOutput(value * self.scale.detach())


# Stores


class Kept(Made, NegativeStore):
    """The last eight positives."""

    def __init__(self, options: Any, setup: Any) -> None:
        super().__init__(options, setup)
        self.kept = torch.zeros(0, setup.dimension)
        self.rows = torch.zeros(0, dtype=torch.long)

    def candidates(self, batch: Any, ctx: Any) -> Any:
        if not len(self.kept):
            return None
        age = torch.ones(len(self.kept), dtype=torch.long)
        mask = self.masked(batch)
        anchors = len(batch.anchors)
        return Negatives.of(self.kept, anchors, name=self.name, mask=mask, row=self.rows, age=age)

    def masked(self, batch: Any) -> Tensor:
        return batch.row.unsqueeze(1) == self.rows.unsqueeze(0)

    def of(self, batch: Any) -> Tensor:
        return batch.row

    def after_step(self, batch: Any, ctx: Any) -> None:
        new = batch.targets["positive"].vectors[:, 0]
        self.kept = torch.cat([self.kept, new])[-8:]
        self.rows = torch.cat([self.rows, self.of(batch)])[-8:]

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {"kept": self.kept, "rows": self.rows}

    def load_state_dict(self, state: Any, *args: Any, **kwargs: Any) -> None:
        self.kept, self.rows = state["kept"], state["rows"]


class OwnerForRow(Kept):
    def of(self, batch: Any) -> Tensor:
        return batch.owner


class InvertedMask(Kept):
    def masked(self, batch: Any) -> Tensor:
        return ~super().masked(batch)


class OpensPositives(Made, NegativeStore):
    """Makes the anchors' own positives negatives."""

    def weigh(self, negatives: Any, batch: Any, ctx: Any) -> Any:
        return replace(negatives, mask=torch.zeros_like(negatives.mask))


class WritesAfterwards(Kept):
    """Writes into the batch when the step is over."""

    def after_step(self, batch: Any, ctx: Any) -> None:
        super().after_step(batch, ctx)
        batch.anchors.zero_()


class DrawsApart(Made, NegativeStore):
    """Draws other negatives in each process, for the same loss."""

    def candidates(self, batch: Any, ctx: Any) -> Any:
        draws = ctx.generator("noise", shared=False)
        noise = torch.randn(3, batch.anchors.shape[1], generator=draws)
        return Negatives.of(noise, len(batch.anchors), name=self.name)


# Heads


class InPlaceHead(nn.Module, Head):
    """Writes into the vectors that it is given."""

    def __init__(self, options: Any, setup: Any) -> None:
        super().__init__()
        self.dimension = setup.dimension
        self.dense = nn.Linear(setup.dimension, setup.dimension)

    def forward(self, vectors: Tensor) -> Tensor:
        with torch.no_grad():
            vectors.mul_(0.5)
        return self.dense(vectors)


def _spec(kind: type, factory: type, **more: Any) -> Record:
    name = "".join(f"-{c.lower()}" if c.isupper() else c for c in factory.__name__).lstrip("-")
    name = more.pop("name", name)
    return kind(name=name, summary="made up", factory=f"{HERE}:{factory.__qualname__}", **more)


RECORDS: list[Record] = [
    *(_spec(AugmenterSpec, each, point="text") for each in (TextsTurned, SharedDraws, UnsaidView)),
    _spec(AugmenterSpec, OwnersOfCorpus, point="text", provides=("view:aux",)),
    *(_spec(AugmenterSpec, each) for each in (IdsTurned, RowsTurned, WordsCounted)),
    *(
        _spec(AugmenterSpec, each, point="word_embeddings")
        for each in (NormOfBatch, InPlaceStates)
    ),
    _spec(BranchSpec, OwnCopy, provides=("branch:own-copy",), trainable=True),
    _spec(BranchSpec, NoDropout, provides=("branch:no-dropout",)),
    *(
        _spec(LossSpec, each)
        for each in (
            Base, IgnoresTargetWeights, IgnoresReduction, Detached, NoGradient, ReturnsNone,
            ReturnsTensor, OpensMask, ScalesAnchors, ByPosition, Unmoved,
        )
    ),
    _spec(LossSpec, Base, name="notes-text", plan_notes=lambda options, facts: "one text"),
    _spec(LossSpec, Base, name="warns-of-none", plan_warnings=lambda options, facts: None),
    _spec(LossSpec, Base, name="derives-nothing", resolve_options=lambda options, facts: None),
    *(
        _spec(StoreSpec, each)
        for each in (Kept, OwnerForRow, InvertedMask, OpensPositives, WritesAfterwards, DrawsApart)
    ),
    _spec(HeadSpec, InPlaceHead),
]  # fmt: skip
