"""Parts of every shape that keep every promise: what the kit must let pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from cse_core.options import LossOptions
from cse_core.parts import (
    Augmenter,
    Loss,
    Metric,
    NegativeStore,
    PositiveMiner,
    SlicePooler,
)
from cse_core.records import (
    AugmenterSpec,
    LossSpec,
    MinerSpec,
    Record,
    SliceSpec,
    StoreSpec,
)
from cse_core.types import LossOutput, Negatives, Positives, Round

__all__ = ["Metric"]

HERE = __name__


class Made:
    """Keeps options and name, as every part does."""

    def __init__(self, options: Any, setup: Any) -> None:
        self.options, self.setup, self.name = options, setup, setup.name


class MadeAugmenter(Made, Augmenter):
    """The base of augmenters."""


class MadeStore(Made, NegativeStore):
    """The base of stores."""


class Repeat(MadeAugmenter):
    """Doubles a token of each row."""

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


class Kept(MadeStore):
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


def cosines(one: Tensor, other: Tensor) -> Tensor:
    return functional.normalize(one, dim=-1) @ functional.normalize(other, dim=-1).T


class Plain(Made, Loss):
    """InfoNCE in its plain form, with everything that the options ask for."""

    options: LossOptions

    def __call__(self, batch: Any, targets: Any, negatives: Any, ctx: Any) -> Any:
        return LossOutput(self.value(batch, targets, negatives))

    def value(self, batch: Any, targets: Any, negatives: Any) -> Tensor:
        anchors = functional.normalize(batch.anchors, dim=-1).unsqueeze(1)
        close = (anchors * functional.normalize(targets.vectors, dim=-1)).sum(-1)
        weights = self.weights(close, targets)
        there = ~negatives.mask * negatives.log_weights.exp()
        mass = (cosines(batch.anchors, negatives.vectors).exp() * there).sum(dim=1, keepdim=True)
        losses = (close.exp() + mass).log() - close
        return self.reduced((losses * weights).sum(dim=1) / weights.sum(dim=1).clamp_min(1e-9))

    def weights(self, close: Tensor, targets: Any) -> Tensor:
        return torch.ones_like(close) if targets.weights is None else targets.weights

    def reduced(self, terms: Tensor) -> Tensor:
        return terms.sum() if self.options.reduction == "sum" else terms.mean()


class Halves(Made, SlicePooler):
    """Cuts content into rows of four tokens, joined by their mean."""

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


class Neighbour(Made, PositiveMiner):
    """The next sentence of the batch."""

    group = "neighbours"

    def mine(self, batch: Any, ctx: Any) -> Any:
        return {self.group: Positives(batch.anchors.roll(1, 0).detach().unsqueeze(1))}


class Pairs(Made, PositiveMiner):
    """Each row with the next."""

    def next_round(self, ctx: Any) -> Round | None:
        texts = list(ctx.corpus.column("text"))
        return Round({"text": texts[:-1], "positive": texts[1:]}) if ctx.round == 1 else None


def _record(kind: Any, made: type, **fields: Any) -> Record:
    factory = f"{HERE}:{made.__name__}"
    values = {"name": made.__name__.lower(), "summary": "made up", "factory": factory, **fields}
    record: Record = kind(**values)
    return record


RECORDS: list[Record] = [
    _record(AugmenterSpec, Repeat),
    _record(StoreSpec, Kept),
    _record(LossSpec, Plain),
    _record(SliceSpec, Halves, provides=("level:segment",)),
    _record(MinerSpec, Neighbour, provides=("positives:neighbours",)),
    _record(MinerSpec, Pairs, rounds=True, provides=("pairs",)),
]
