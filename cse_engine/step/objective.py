"""From the vectors of a batch to its loss: levels, positives, negatives, the weighted sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from types import MappingProxyType
from typing import Any, cast

import torch
from torch import Tensor

from cse_core.capabilities import Role
from cse_core.errors import CseError
from cse_core.functional import listed
from cse_core.options import LossOptions, MinerOptions, StoreOptions, TokenLossOptions
from cse_core.parts import Loss
from cse_core.protocols import Encoder
from cse_core.records import TokenLossSpec
from cse_core.types import (
    SENTENCE,
    Batch,
    CorpusKeys,
    Embeddings,
    LossOutput,
    Negatives,
    Positives,
    StepContext,
    TokenSums,
)
from cse_engine.compose.composition import PlannedPart
from cse_engine.runtime.distributed import all_reduce_total, rank_and_size
from cse_engine.step.assembly import Assembly
from cse_engine.step.negatives import (
    dimension_mismatch,
    most_negatives,
    negative_counts,
    negatives_for_loss,
    reversed_batch,
)
from cse_engine.step.part_calls import PartCalls
from cse_engine.step.row_keys import align, rows_that_hold
from cse_engine.step.tiles import ALL, batch_with_vectors, in_tiles, some_anchors, with_vectors
from cse_engine.step.views import MAX_WATCHED_CALLS

Vectors = Mapping[str, Mapping[str, Embeddings]]
ALIGNED_ROLES = ("anchor", "positive")


@dataclass(frozen=True)
class Term:
    """A loss over the whole batch.

    Attributes:
        own: What this process adds to its value, with gradient; without one where the rows of a
            loss on token states come in chunks.
        value: Over all processes.
        parts: For the log.
        count: How many terms a loss on token states has there, at least 1.
    """

    own: Tensor
    value: Tensor
    parts: Mapping[str, Tensor]
    count: Tensor | int = 1

    @staticmethod
    def of(chunks: Sequence[TokenSums]) -> Term:
        """Return the term of a loss on token states, of what all chunks and processes make."""
        dtype = torch.promote_types(chunks[0].total.dtype, torch.float32)
        local = torch.stack([chunk.total.to(dtype) for chunk in chunks]).sum()
        names = sorted(chunks[0].parts)
        numbers = [[c.total, c.count, *(c.parts[name] for name in names)] for c in chunks]
        flat = [torch.stack([value.detach().to(dtype) for value in row]) for row in numbers]
        total, count, *parts = all_reduce_total(torch.stack(flat).sum(dim=0))
        count = count.clamp_min(1)
        shown = {name: part / count for name, part in zip(names, parts, strict=True)}
        return Term(local / count, total / count, shown, count)


@dataclass(frozen=True)
class Objective:
    """The weighted sum of the losses, scalars for the log, and the batch at each level.

    Without a loss that had a positive or token states, the sum does not exist. ``value`` has the
    gradient of this process, ``loss`` the number over all; ``weights`` are those of losses on
    token states.
    """

    value: Tensor | None
    loss: Tensor | None
    weights: dict[str, float]
    parts: dict[str, Tensor]
    batches: dict[str, Batch]


class Objectives:
    """Computes objectives from the vectors of a batch.

    ``active`` names the losses of the round; None is all.

    Attributes:
        level_of: Level of the batch that a loss, store or miner sees, by its path.
        levels: All levels that a batch is made of.
    """

    def __init__(self, assembly: Assembly, active: tuple[str, ...] | None = None) -> None:
        self.assembly = assembly
        run = self.composition = assembly.composition
        chosen = [loss for loss in run.of("loss") if active is None or loss.name in active]
        self.token_losses = tuple(p for p in chosen if isinstance(p.spec, TokenLossSpec))
        self.losses = [loss for loss in chosen if loss not in self.token_losses]
        self.level_of = {
            planned.path: cast(LossOptions | StoreOptions | MinerOptions, planned.options).level
            for planned in (*self.losses, *run.of("negatives"), *run.of("positives"))
        }
        self.levels = tuple(dict.fromkeys([*self.level_of.values(), SENTENCE]))
        self._acted: set[str] = set()
        self._changed: dict[str, Tensor] = {}

    @property
    def acted(self) -> set[str]:
        """Paths of the losses that were computed, and of stores that gave or changed negatives.

        The device is waited for.
        """
        return self._acted | {path for path, changed in self._changed.items() if bool(changed)}

    def __call__(
        self,
        vectors: Vectors,
        roles: Mapping[str, Role],
        rows: Tensor,
        corpus: CorpusKeys,
        ctx: StepContext,
        terms: Mapping[str, Term] = MappingProxyType({}),
        lists: Mapping[str, int] = MappingProxyType({}),
        *,
        count_negatives: bool = False,
    ) -> Objective:
        """Return the objective of the batch of ``[B]`` corpus rows.

        ``terms`` are those of the losses on token states, by name; ``lists`` the texts of the
        longest list of each view that has several texts of a row.

        With ``count_negatives`` the negatives that each loss saw are counted among its parts.
        """
        columns: dict[str, Any] = {"rows": rows, "views": vectors, "roles": roles, "corpus": corpus}
        batches = {level: self._batch(level, ctx, lists, **columns) for level in self.levels}
        values: list[tuple[Tensor, Tensor]] = []
        parts: dict[str, Tensor] = {}
        weights: dict[str, float] = {}
        for planned in (*self.losses, *self.token_losses):
            name, options = planned.name, cast(LossOptions | TokenLossOptions, planned.options)
            term = terms.get(name)
            if isinstance(options, LossOptions):
                term = self._loss(planned, batches[options.level], ctx, count_negatives)
            if term is None:
                continue
            self._acted.add(planned.path)
            parts[f"{name}.loss"] = term.value
            parts.update({f"{name}.{part}": value for part, value in term.parts.items()})
            weights[name] = options.weight.at(ctx.step, ctx.total_steps)
            values.append((term.own * weights[name], term.value * weights[name]))
        sides = zip(*values, strict=True) if values else ((), ())
        total, loss = (sum(side[1:], side[0]) if side else None for side in sides)
        return Objective(total, loss, weights, parts, batches)

    def _batch(
        self, level: str, ctx: StepContext, lists: Mapping[str, int], **columns: Any
    ) -> Batch:
        views, roles = columns["views"], columns["roles"]
        rows = {name: levels[level] for name, levels in views.items() if level in levels}
        pulled = {name: part for name, part in rows.items() if roles[name] in ALIGNED_ROLES}
        targets = align({name: part for name, part in pulled.items() if name not in lists})
        anchors = targets.pop("anchor")
        positives = {n: Positives(rows.vectors.unsqueeze(1)) for n, rows in targets.items()}
        for name in pulled.keys() & lists.keys():
            keys = anchors.owner, anchors.slot
            positives[name] = listed(pulled[name], *keys, lists[name])
        for view in self.composition.views:
            if view.weights and view.name in positives:
                weights = ctx.values(view.weights)
                weights = weights.reshape(len(weights), -1)[anchors.owner].to(anchors.vectors.dtype)
                group = positives[view.name]
                given = 1 if group.weights is None else group.weights
                positives[view.name] = replace(group, weights=weights.clamp_min(0) * given)
        columns |= {"owner": anchors.owner, "slot": anchors.slot, "targets": positives}
        batch = Batch(level=level, anchors=anchors.vectors, stored={}, **columns)
        calls = self.assembly.calls
        calls.note("encoder", level, batch.anchors)
        mined: dict[str, Positives] = {}
        for name, miner in self.assembly.of("positives").items():
            if self.level_of[f"positives.{name}"] == level:
                mined.update(calls(miner, "mine", batch, ctx))
        batch = replace(batch, targets={**batch.targets, **mined})
        stored: dict[str, Negatives] = {}
        for name, store in self.assembly.of("negatives").items():
            if self.level_of[f"negatives.{name}"] == level:
                candidates = calls(store, "candidates", batch, ctx)
                if candidates is not None and len(candidates):
                    stored[name] = replace(candidates, blocks=((name, len(candidates)),))
        return replace(batch, stored=stored)

    def _loss(
        self, planned: PlannedPart, batch: Batch, ctx: StepContext, count_negatives: bool
    ) -> Term | None:
        options = cast(LossOptions, planned.options)
        batch = rows_that_hold(batch, options.only, ctx.texts) if options.only else batch
        targets = batch.targets.get(options.target)
        if targets is None or not len(batch.anchors):
            return None
        width, wanted = targets.vectors.shape[2], batch.anchors.shape[1]
        if width != wanted:
            raise dimension_mismatch(f"views.{options.target}.branch", width, wanted)
        run, calls = self.composition, self.assembly.calls
        stores = [store.name for store in run.of("negatives") if run.serves(store, planned)]
        negatives = self._weighed(batch, batch, options, stores, ctx)
        shown = negative_counts(batch, negatives, options, stores) if count_negatives else {}
        loss = cast(Loss, self.assembly.parts[planned.path])
        with _without_encoding(planned, self.assembly.online.encoder):
            output = _of_sizes(options, calls, loss, batch, targets, negatives, ctx)
            value = output.value
            if options.directions == "both":
                swapped, anchors = reversed_batch(batch, options.target)
                others = self._weighed(batch, swapped, options, stores, ctx)
                backward = _of_sizes(options, calls, loss, swapped, anchors, others, ctx)
                value = (value + backward.value) / 2
        shown |= {name: part.detach() for name, part in output.parts.items()}
        return Term(value, value.detach(), shown)

    def _weighed(
        self,
        batch: Batch,
        seen_by: Batch,
        options: LossOptions,
        stores: Sequence[str],
        ctx: StepContext,
    ) -> Negatives:
        """Return the negatives of a batch's anchors, or of its reverse, weighed by stores."""
        tiles: dict[str, dict[int, tuple[Any, int]]] = {}

        def log(some: slice, name: str, value: Tensor | float) -> None:
            """Log the mean over the anchors; a tile that is made again counts once."""
            means, count = tiles.setdefault(name, {}), some.stop - some.start
            ctx.log(name, value)  # which refuses what cannot be logged
            means[some.start] = (value * count, count)
            total, counts = map(sum, zip(*means.values(), strict=True))
            ctx.log(name, total / counts)

        def make(some: slice) -> Negatives:
            negatives = negatives_for_loss(batch, options, stores, some, seen_by)
            tile = some_anchors(seen_by, some)
            noted = ctx if some == ALL else ctx.replace(log=partial(log, some))
            for store in stores:
                part, given = self.assembly.parts[f"negatives.{store}"], negatives
                negatives = self.assembly.calls(part, "weigh", given, tile, noted)
                if store in batch.stored:
                    self._acted.add(part.path)
                elif given is not negatives and ctx.step < MAX_WATCHED_CALLS:
                    changed = _differ(given, negatives)
                    self._changed[part.path] = self._changed.get(part.path, changed) | changed
            return negatives

        return in_tiles(seen_by, most_negatives(batch, options.target), make)


def _of_sizes(
    options: LossOptions, calls: PartCalls, loss: Loss, batch: Batch, *given: Any
) -> LossOutput:
    """Compute a loss, or its sum over the sizes that its options name (Matryoshka).

    Given are its positives, its negatives and the context.
    """
    if not options.dimensions:
        whole: LossOutput = calls(loss, "__call__", batch, *given)
        return whole
    targets, negatives, ctx = given
    weights = options.dimension_weights or (1.0,) * len(options.dimensions)
    values: list[Tensor] = []
    parts: dict[str, Tensor] = {}
    for size, weight in zip(options.dimensions, weights, strict=True):
        first = itemgetter((..., slice(size)))  # the first numbers of each vector
        others = (with_vectors(targets, first), with_vectors(negatives, first), ctx)
        output: LossOutput = calls(loss, "__call__", batch_with_vectors(batch, first), *others)
        values.append(output.value * weight)
        parts |= {f"{size}": output.value, **{f"{size}.{n}": v for n, v in output.parts.items()}}
    return LossOutput(torch.stack(values).sum(), parts)


def _differ(one: Negatives, two: Negatives) -> Tensor:
    """Return whether a part changed negatives, on the device: nothing waits for it."""
    fields = ("vectors", "mask", "log_weights")
    flags = ((getattr(one, name) != getattr(two, name)).any() for name in fields)
    return torch.stack([*flags]).any()


def _without_encoding(loss: PlannedPart, encoder: Encoder) -> ExitStack:
    """Refuse a loss that calls the encoder itself, with gradient, over several processes.

    Each process computes the whole loss, and the gradients of the encoder are summed: what a loss
    encodes by itself would count once for each process.
    """
    stack, size = ExitStack(), rank_and_size()[1]

    def refuse(*_: object) -> None:
        if torch.is_grad_enabled():
            what = f"encodes by itself, so {size} processes would count its gradient {size} times"
            raise CseError(what, where=loss.path, value=loss.owner, hint="train in one process")

    for module in (encoder, encoder.model) if size > 1 else ():
        stack.enter_context(module.register_forward_pre_hook(refuse))
    return stack
