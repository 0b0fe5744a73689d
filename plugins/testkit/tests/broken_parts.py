"""Parts that each break one promise, and the records of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from cse_core.builtins import plugin as builtins
from cse_core.builtins.poolers import row_means
from cse_core.capabilities import Requirement
from cse_core.options import (
    LossOptions,
)
from cse_core.parts import (
    Augmenter,
    Branch,
    Head,
    Loss,
    NegativeStore,
    PositiveMiner,
    RowPooler,
    SlicePooler,
)
from cse_core.records import (
    AugmenterSpec,
    BranchSpec,
    HeadSpec,
    LossSpec,
    MetricSpec,
    MinerSpec,
    Record,
    RowPoolerSpec,
    SliceSpec,
    StoreSpec,
)
from cse_core.registry.registry import Registered, Registry
from cse_core.types import LossOutput, Negatives, Positives, Round
from plugins.testkit.tests import mutants, sound_parts

HERE = __name__


class Made:
    def __init__(self, options: Any, setup: Any) -> None:
        self.options, self.setup = options, setup


# Augmenters


class Repeat(Made, Augmenter):
    """Keeps every promise: doubles a token of each row."""

    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        draws = ctx.generator(self.name, shared=False)
        index, lengths = [], []
        for row in range(x.rows):
            start, stop = int(x.offsets[row]), int(x.offsets[row + 1])
            content = [t for t in range(start, stop) if not bool(x.special[t])]
            pick = content[int(torch.randint(len(content), (), generator=draws))]
            index += [t for t in range(start, stop) for _ in range(2 if t == pick else 1)]
            lengths.append(stop - start + 1)
        return x.take_tokens(torch.tensor(index), torch.tensor(lengths))


class DropsRow(Made, Augmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return x.take_rows(torch.arange(x.rows - 1))


class SwapsRows(Made, Augmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return x.take_rows(torch.arange(x.rows).flip(0))


class DropsSpecial(Made, Augmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return x.keep_tokens(~x.special | (x.positions == 0))


class InPlace(Made, Augmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        x.ids[~x.special] = 7
        return x


class GlobalRandom(Made, Augmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return x.keep_tokens(x.special | (torch.rand(len(x.ids)) > 0.3) | (x.positions == 1))


class Counts(Made, Augmenter):
    calls = 0

    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        self.calls += 1
        return x


class IgnoresDraws(Made, Augmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        ctx.generator(self.name)
        return [f"{text} ." for text in x]


class LosesText(Made, Augmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return x[:-1]


class CutsGradient(Made, Augmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return x.detach() * 1.5


class Reshapes(Made, Augmenter):
    def __call__(self, x: Any, tokens: Any, view: Any, ctx: Any) -> Any:
        return x[:-1]


# Stores


class Ring(Made, NegativeStore):
    """Keeps every promise: the last eight positives."""

    size: ClassVar[int] = 8

    def __init__(self, options: Any, setup: Any) -> None:
        super().__init__(options, setup)
        self.kept = torch.zeros(0, setup.dimension)
        self.rows = torch.zeros(0, dtype=torch.long)

    def candidates(self, batch: Any, ctx: Any) -> Any:
        if not len(self.kept):
            return None
        age = torch.ones(len(self.kept), dtype=torch.long)
        return Negatives.of(self.kept, len(batch.anchors), name=self.name, row=self.rows, age=age)

    def after_step(self, batch: Any, ctx: Any) -> None:
        new = batch.targets["positive"].vectors[:, 0]
        self.kept = torch.cat([self.kept, new])[-self.size :]
        self.rows = torch.cat([self.rows, batch.row])[-self.size :]

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {"kept": self.kept, "rows": self.rows}

    def load_state_dict(self, state: Any, *args: Any, **kwargs: Any) -> None:
        self.kept, self.rows = state["kept"], state["rows"]


class StoresInCandidates(Ring):
    def candidates(self, batch: Any, ctx: Any) -> Any:
        found = super().candidates(batch, ctx)
        self.kept = torch.cat([self.kept, batch.anchors.detach()])[-self.size :]
        self.rows = torch.cat([self.rows, batch.row])[-self.size :]
        return found


class KeepsGraph(Ring):
    def __init__(self, options: Any, setup: Any) -> None:
        super().__init__(options, setup)
        self.map = nn.Linear(setup.dimension, setup.dimension)
        nn.init.eye_(self.map.weight)

    def after_step(self, batch: Any, ctx: Any) -> None:
        super().after_step(batch, ctx)
        self.kept = self.map(self.kept)


class ForgetsState(Ring):
    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Any, *args: Any, **kwargs: Any) -> None:
        pass


class StrangeState(Ring):
    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {**super().state_dict(), "seen": {1, 2}}


class TurnedMask(Ring):
    def candidates(self, batch: Any, ctx: Any) -> Any:
        found = super().candidates(batch, ctx)
        return None if found is None else replace(found, mask=found.mask.T)


class FloatMask(Ring):
    def candidates(self, batch: Any, ctx: Any) -> Any:
        found = super().candidates(batch, ctx)
        return None if found is None else replace(found, log_weights=found.log_weights / 0)


class WeighsVectors(Made, NegativeStore):
    def weigh(self, negatives: Any, batch: Any, ctx: Any) -> Any:
        return replace(negatives, vectors=negatives.vectors * 2)


class WeighNeedsCandidates(Made, NegativeStore):
    def weigh(self, negatives: Any, batch: Any, ctx: Any) -> Any:
        top = negatives.log_weights.max(dim=1, keepdim=True).values
        return replace(negatives, log_weights=negatives.log_weights - top)


# Losses


class Plain(Made, Loss):
    """Keeps every promise."""

    def logits(self, batch: Any, targets: Any, negatives: Any) -> tuple[Tensor, Tensor]:
        anchors = functional.normalize(batch.anchors, dim=-1)
        others = functional.normalize(negatives.vectors, dim=-1)
        each = (anchors.unsqueeze(1) * functional.normalize(targets.vectors, dim=-1)).sum(-1)
        weights = torch.ones_like(each) if targets.weights is None else targets.weights
        total = weights.sum(dim=1).clamp_min(1e-9)
        return (each * weights).sum(dim=1) / total, anchors @ others.T

    def reduced(self, terms: Tensor) -> LossOutput:
        return LossOutput(terms.sum() if self.options.reduction == "sum" else terms.mean())

    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> LossOutput:
        positive, negative = self.logits(batch, targets, negatives)
        there = ~negatives.mask * negatives.log_weights.exp()
        mass = (negative.exp() * there).sum(dim=1)
        return self.reduced((positive.exp() + mass).log() - positive)


class MeanOfNothing(Plain):
    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> LossOutput:
        _, negative = self.logits(batch, targets, negatives)
        there = (~negatives.mask & negatives.log_weights.isfinite()).to(negative.dtype)
        return LossOutput((negative * there).sum() / there.sum())


class IgnoresMask(Plain):
    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> LossOutput:
        open_ = replace(negatives, mask=torch.zeros_like(negatives.mask))
        return super().__call__(batch, targets, open_, ctx)


class IgnoresWeights(Plain):
    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> LossOutput:
        flat = replace(negatives, log_weights=torch.zeros_like(negatives.log_weights))
        return super().__call__(batch, targets, flat, ctx)


class NanGradient(Plain):
    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> LossOutput:
        positive, negative = self.logits(batch, targets, negatives)
        negative = (negative + negatives.log_weights).masked_fill(negatives.mask, -torch.inf)
        mass = torch.logsumexp(negative, dim=1).clamp_min(-10)
        return LossOutput((mass - positive).mean())


class WantsFour(Plain):
    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> LossOutput:
        first = batch.anchors[[0, 1, 2, 3]].sum() * 0
        output = super().__call__(batch, targets, negatives, ctx)
        return LossOutput(output.value + first)


class PerAnchor(Plain):
    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> LossOutput:
        return LossOutput(self.logits(batch, targets, negatives)[0])


class NanLoss(Plain):
    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> LossOutput:
        return LossOutput(super().__call__(batch, targets, negatives, ctx).value * torch.nan)


# Poolers


class ReadsOthers(Made, RowPooler):
    def __init__(self, options: Any, setup: Any) -> None:
        super().__init__(options, setup)
        self.dimension = setup.dimension

    def pool(self, hidden: Any, tokens: Any) -> Tensor:
        return row_means(hidden.last, tokens) - hidden.last.mean(dim=0)


class BatchNormHead(nn.Module, Head):
    def __init__(self, options: Any, setup: Any) -> None:
        super().__init__()
        self.dimension = setup.dimension
        self.norm = nn.BatchNorm1d(setup.dimension)

    def forward(self, vectors: Tensor) -> Tensor:
        return self.norm(vectors)


class Halves(Made, SlicePooler):
    """Keeps every promise: cuts content into rows of four tokens, joined by their mean."""

    def slices(self, tokens: Any) -> Any:
        rows, slots, lengths = [], [], []
        for row, length in enumerate(tokens.lengths.tolist()):
            parts = max(1, -(-length // 4))
            rows += [row] * parts
            slots += list(range(parts))
            lengths += [min(4, length - 4 * part) for part in range(parts)]
        whole = tokens.take_tokens(torch.arange(len(tokens.ids)), torch.tensor(lengths))
        return replace(whole, owner=tokens.owner[torch.tensor(rows)], slot=torch.tensor(slots))

    def join(self, rows: Any) -> Any:
        owners = list(dict.fromkeys(rows.owner.tolist()))
        place = torch.tensor([owners.index(owner) for owner in rows.owner.tolist()]).long()
        sums = rows.vectors.new_zeros(len(owners), rows.vectors.shape[1])
        sums = sums.index_add(0, place, rows.vectors)
        counts = torch.bincount(place, minlength=len(owners)).clamp_min(1).unsqueeze(1)
        length = rows.length.new_zeros(len(owners)).index_add(0, place, rows.length)
        owner = torch.tensor(owners, dtype=torch.long)
        return replace(
            rows, vectors=sums / counts, owner=owner, slot=torch.zeros_like(owner), length=length
        )


class SlotsFromOne(Halves):
    def slices(self, tokens: Any) -> Any:
        cut = super().slices(tokens)
        return replace(cut, slot=cut.slot + 1)


class JoinsSorted(Halves):
    def join(self, rows: Any) -> Any:
        joined = super().join(rows)
        return joined.take(torch.argsort(joined.owner))


# Miners


class Neighbour(Made, PositiveMiner):
    """Keeps every promise: the next sentence of the batch."""

    group = "neighbours"

    def mine(self, batch: Any, ctx: Any) -> Any:
        return {self.group: Positives(batch.anchors.roll(1, 0).detach().unsqueeze(1))}


class OtherGroup(Neighbour):
    group = "friends"


class FlatGroup(Neighbour):
    def mine(self, batch: Any, ctx: Any) -> Any:
        weights = torch.full((len(batch.anchors), 2), -1.0)
        return {self.group: Positives(batch.anchors.detach().unsqueeze(1), weights)}


class Pairs(Made, PositiveMiner):
    """Keeps every promise: each row with the next."""

    def next_round(self, ctx: Any) -> Round | None:
        texts = list(ctx.corpus.column("text"))
        return Round({"text": texts[:-1], "positive": texts[1:]}) if ctx.round == 1 else None


class UnevenPairs(Pairs):
    def next_round(self, ctx: Any) -> Round | None:
        texts = list(ctx.corpus.column("text"))
        return Round({"text": texts, "positive": texts[1:]})


# Branches and metrics


class MovesOnline(Branch):
    def __init__(self, options: Any, setup: Any) -> None:
        self.encoder = setup.online_encoder()
        self.heads = setup.heads

    @torch.no_grad()
    def after_step(self, batch: Any, ctx: Any) -> None:
        for parameter in self.encoder.parameters():
            parameter.mul_(0.99)


class NanMetric:
    def __init__(self, options: Any, setup: Any) -> None:
        pass

    def compute(self, encode: Any, pairs: Any) -> dict[str, float]:
        return {"spread": float("nan")}


# Options


class SilentOptions(LossOptions):
    rate: float = 0.1


class WrongDefault(LossOptions):
    mode: Literal["a", "b"] = "c"  # type: ignore[assignment]
    """Which."""


class LooseOptions(LossOptions):
    """Takes anything."""

    model_config = {"extra": "ignore", "frozen": False}


def _spec(kind: type, factory: type, **more: Any) -> Record:
    name = "".join(f"-{c.lower()}" if c.isupper() else c for c in factory.__name__).lstrip("-")
    name = more.pop("name", name)
    return kind(name=name, summary="made up", factory=f"{HERE}:{factory.__qualname__}", **more)


SEGMENT: tuple[Requirement, ...] = ("level:segment",)
RECORDS: list[Record] = [
    *(
        _spec(AugmenterSpec, each)
        for each in (Repeat, DropsRow, SwapsRows, DropsSpecial, InPlace, GlobalRandom, Counts)
    ),
    *(_spec(AugmenterSpec, each, point="text") for each in (IgnoresDraws, LosesText)),
    *(_spec(AugmenterSpec, each, point="word_embeddings") for each in (CutsGradient, Reshapes)),
    *(
        _spec(StoreSpec, each)
        for each in (
            Ring, StoresInCandidates, KeepsGraph, ForgetsState, StrangeState, TurnedMask,
            FloatMask, WeighsVectors, WeighNeedsCandidates,
        )
    ),
    *(
        _spec(LossSpec, each)
        for each in (
            Plain, MeanOfNothing, IgnoresMask, IgnoresWeights, NanGradient, WantsFour, PerAnchor,
            NanLoss,
        )
    ),
    _spec(RowPoolerSpec, ReadsOthers),
    _spec(HeadSpec, BatchNormHead),
    *(
        _spec(SliceSpec, each, provides=SEGMENT)
        for each in (Halves, SlotsFromOne, JoinsSorted)
    ),
    *(
        _spec(MinerSpec, each, provides=("positives:neighbours",))
        for each in (Neighbour, OtherGroup, FlatGroup)
    ),
    *(_spec(MinerSpec, each, rounds=True, provides=("pairs",)) for each in (Pairs, UnevenPairs)),
    _spec(BranchSpec, MovesOnline, provides=("branch:moves-online",)),
    _spec(MetricSpec, NanMetric),
    _spec(LossSpec, Plain, name="silent", options=SilentOptions),
    _spec(LossSpec, Plain, name="wrong-default", options=WrongDefault),
    _spec(LossSpec, Plain, name="loose", options=LooseOptions),
    _spec(LossSpec, Plain, name="odd-token", requires=("sight:identical",)),
    LossSpec(name="no-class", summary="made up", factory=f"{HERE}:Nobody"),
    _spec(LossSpec, Repeat, name="other-kind"),
]  # fmt: skip


def broken_registry() -> Registry:
    """Return the built-in parts, the broken ones and the sound ones."""
    own: list[Record] = [
        *builtins.cse_poolers(), *builtins.cse_losses(), *builtins.cse_branches()
    ]  # fmt: skip
    brought = {
        "cse-toolkit": own,
        "cse-broken": [*RECORDS, *mutants.RECORDS],
        "cse-sound": sound_parts.RECORDS,
    }
    return Registry(
        Registered(record, distribution, "0.1.0", f"{distribution}:it")
        for distribution, records in brought.items()
        for record in records
    )
