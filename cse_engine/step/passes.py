"""Encoder passes per step, as the plan has them: encoder calls and their backward passes."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import torch
from torch import Tensor

from cse_core.capabilities import Role
from cse_core.functional import derive_seed
from cse_core.options import TransformOptions
from cse_core.types import INPUT, SENTENCE, Embeddings, StepContext, TokenBatch, TokenSums
from cse_engine.compose.composition import PlannedPart, PlannedPass
from cse_engine.compose.settings import TrainOptions
from cse_engine.runtime import distributed
from cse_engine.runtime.device import Precision
from cse_engine.runtime.seeds import StepPosition, draws, uniform_draws
from cse_engine.step.assembly import BoundAugmenter
from cse_engine.step.encoding import Levels, encode_views, no_vectors, token_states
from cse_engine.step.input_gradients import (
    Fields,
    GradientCapture,
    Spans,
    backward_to_inputs,
    look_up,
)
from cse_engine.step.negatives import loss_negatives
from cse_engine.step.objective import TokenTerm
from cse_engine.step.row_keys import Gathering, KeysOnDevice, RowKeys, join_chunks, number
from cse_engine.step.views import PreparedView, ViewBuilder

EMBEDDINGS = ("word_embeddings", "input_embeddings")
"""Points at which embeddings are changed and watched."""
Pieces = list[PreparedView]
"""The rows of a view, those of each chunk apart."""


@dataclass(frozen=True)
class RoundSetup:
    """What all steps of a round share."""

    builder: ViewBuilder
    train: TrainOptions
    precision: Precision
    input_level: bool
    token_losses: tuple[PlannedPart, ...]

    def reading(self, names: Collection[str]) -> list[PlannedPart]:
        """Return the losses that read token states of these views."""
        return [loss for loss in self.token_losses if not {*loss.token_views}.isdisjoint(names)]


class StepPasses:
    """The passes over one batch.

    ``index`` has the rows ``[B]`` of the round over all processes, each of which encodes its own
    share. Parts' scalars go to ``logged``. ``fields`` are gradients of the inputs by mode
    (``fresh``, ``previous``), point and view.
    """

    def __init__(
        self,
        setup: RoundSetup,
        index: Tensor,
        position: StepPosition,
        logged: dict[str, Tensor | float],
        fields: dict[str, Fields] | None = None,
    ) -> None:
        self.setup = setup
        self.assembly = setup.builder.assembly
        self.device = self.assembly.device
        self.train = setup.train
        self.rank, self.size = distributed.rank_and_size()
        start, stop = distributed.share(len(index), self.rank, self.size)
        self.all_index, self.index, self.first_owner = index, index[start:stop], start
        self.rows = setup.builder.rows.corpus_row[index]
        self.position = position
        self.fields = fields or {}
        self.off: frozenset[str] = frozenset()
        self.kept: Levels = {}
        self._begin(logged)
        self.views = setup.builder.build(
            self.index, self.rows[start:stop], start, self.context(self.index)
        )
        self.roles: dict[str, Role] = {name: v.view.role for name, v in self.views.items()}
        self.tokens = sum(len(prepared.tokens.ids) for prepared in self.views.values())
        # The first process has most rows: all make as many calls, whose last may have no rows.
        _, most = distributed.share(len(index), 0, self.size)
        size = min(self.train.chunk_size or most, most)
        self.chunks = [(s, s + size) for s in range(0, max(most, 1), max(size, 1))]
        self.numbers = range(len(self.chunks))
        self._keys_on_device = KeysOnDevice(self.device)
        planned = self.assembly.composition.views
        row_each = self.assembly.online.slicer is None and not any(v.made_by for v in planned)
        self.gathering = Gathering(len(index), row_each, self._keys_on_device)
        self.pieces = {name: self._cut(view) for name, view in self.views.items()}
        self.keys = {name: self._keys(pieces) for name, pieces in self.pieces.items()}

    def _begin(self, logged: dict[str, Tensor | float]) -> None:
        self.logged = logged
        self.extra: dict[tuple[str, str], dict[str, Embeddings]] = {}
        self.vectors: Levels = {}
        self.terms: dict[str, TokenTerm] = {}
        self.leaves: dict[tuple[str, str], Tensor] = {}

    def _cut(self, view: PreparedView) -> Pieces:
        first = self.first_owner
        return [view.between(first + start, first + stop) for start, stop in self.chunks]

    def _keys(self, pieces: Pieces) -> dict[str, RowKeys]:
        """Return the row keys of a view by level, in the order in which its rows are encoded."""
        row_level = self.assembly.online.row_level
        rows = [(piece.tokens.owner, piece.tokens.slot) for piece in pieces]
        found = {row_level: self._keys_on_device.of(*map(torch.cat, zip(*rows, strict=True)))}
        if row_level != SENTENCE:
            texts = [piece.text_keys() for piece in pieces]
            found[SENTENCE] = self._keys_on_device.of(*map(torch.cat, zip(*texts, strict=True)))
        return {**found, INPUT: found[SENTENCE]}

    def gradient_probe(self, off: frozenset[str]) -> StepPasses:
        """Return passes for the gradients of the inputs: without these augmenters and their log."""
        probe = copy.copy(self)
        probe.off = off
        probe._begin({})
        return probe

    def reuse_encodings_from(self, probe: StepPasses) -> None:
        """Keep what a probe encoded without gradient and would encode to the same again."""
        views = self.assembly.composition.views
        changed = {view.name for view in views if not probe.off.isdisjoint(view.augmenters)}
        self.extra.update({key: e for key, e in probe.extra.items() if key[0] not in changed})
        self.kept = {name: e for name, e in probe.kept.items() if name not in changed}

    # -- encoding ---------------------------------------------------------------------------

    def encode(self, capture: GradientCapture) -> Levels:
        """Encode every view by its own branch, and what other branches encode for parts."""
        cached, precision = len(self.chunks) > 1, self.setup.precision
        local: Levels = {}
        sums: dict[str, list[TokenSums]] = {}
        for planned, names in self.of_the_objective():
            if not planned.gradient and all(name in self.kept for name in names):
                local.update({name: self.kept[name] for name in names})
                continue
            # Weights are cast once for all chunks, which are encoded either with gradient or
            # without: a cast that was made without one carries none back to the weights.
            with torch.set_grad_enabled(planned.gradient and not cached), precision.autocast():
                calls = [self.call(planned.branch, names, i, capture, sums) for i in self.numbers]
            for name in names:
                local[name] = join_chunks([call[name] for call in calls], self.keys[name])
                if not planned.gradient:
                    self.kept[name] = local[name]
                elif cached:
                    local[name] = {level: rows.detach() for level, rows in local[name].items()}
                    for level, rows in local[name].items():
                        if level != INPUT:
                            self.leaves[name, level] = rows.vectors.requires_grad_(True)
        asked = {
            (name, planned.branch): None
            for planned in (() if self.off else self.assembly.composition.passes)
            for name in planned.views
            if name in self.views and self.views[name].view.branch != planned.branch
        }
        also = {key: self._encoded_by(*key) for key in asked if key not in self.extra}
        whole = self.gathering({**{(name, ""): levels for name, levels in local.items()}, **also})
        self.vectors = {name: whole[name, ""] for name in local}
        self.extra.update({key: whole[key] for key in also})
        self.terms = {name: TokenTerm.of(parts) for name, parts in sums.items()}
        return self._transformed()

    def _transformed(self) -> Levels:
        """Return the vectors as transforms leave them; parts ask for those before."""
        found = self.vectors
        with torch.autocast(self.device.type, enabled=False):
            for planned in self.assembly.composition.of("transform"):
                level = cast(TransformOptions, planned.options).level
                views = {view: levels[level] for view, levels in found.items() if level in levels}
                part = self.assembly.parts[planned.path]
                changed = self.assembly.calls(part, "__call__", views, self.context())
                found = {
                    view: {**levels, level: changed[view]} if view in changed else levels
                    for view, levels in found.items()
                }
        return found

    def of_the_objective(self) -> Iterator[tuple[PlannedPass, list[str]]]:
        """Yield one pass of each branch, and which of the branch's own views are there."""
        done = set()
        for planned in self.assembly.composition.passes:
            names = [
                name
                for name, prepared in self.views.items()
                if name in planned.views and prepared.view.branch == planned.branch
            ]
            if names and planned.branch not in done and (self.off or not planned.off):
                done.add(planned.branch)
                yield planned, names

    def call(
        self,
        branch: str,
        names: list[str],
        chunk: int,
        capture: GradientCapture,
        sums: dict[str, list[TokenSums]],
        label: str = "main",
        pieces: Mapping[str, Pieces] | None = None,
    ) -> Levels:
        """Encode a chunk of several views in one encoder call of a branch.

        ``sums`` take what losses on the views' token states make of them, in the ``main`` calls.
        ``label`` names the dropout masks, with the branch; ``pieces`` are the rows of the views
        where they are not those of this step.
        """
        encoder = self.assembly.encoders[branch]
        self._seed_dropout(f"{label}:{branch}", chunk)
        acting = [
            augmenter
            for augmenter in self.assembly.augmenters
            if encoder.tokenizer is self.assembly.online.tokenizer
            and augmenter.point in EMBEDDINGS
            and augmenter.planned.path not in self.off
            and any(name in augmenter.views for name in names)
        ]
        seen = acting or capture.points
        change = partial(self._change, acting, chunk, capture) if seen else None
        known = pieces or self.pieces
        views = {name: known[name][chunk] for name in names}
        reading = self.setup.reading(names) if label == "main" else []
        states: dict[str, Tensor] = {}
        kept = states if reading else None
        with self.setup.precision.autocast():
            found = encode_views(encoder, views, self.device, self.setup.input_level, change, kept)
            for loss in reading:
                made = self._sums(loss, views, found, states, chunk)
                sums.setdefault(loss.name, []).append(made)
        return found

    def _seed_dropout(self, name: str, chunk: int) -> None:
        """Let the dropout masks be those of what a name stands for, in a chunk of this step."""
        place = (self.position.round, self.position.step, "dropout", name, chunk, self.rank)
        self.assembly.dropout.seed(derive_seed(self.train.seed, *place))

    def _sums(
        self,
        loss: PlannedPart,
        views: Mapping[str, PreparedView],
        levels: Levels,
        states: Mapping[str, Tensor],
        chunk: int,
    ) -> TokenSums:
        """Return what a loss on token states makes of a chunk's rows."""
        self._seed_dropout(loss.path, chunk)
        start, stop = self.chunks[chunk]
        level = self.assembly.online.row_level
        given = {
            name: token_states(
                views[name],
                states[name],
                levels[name][level].vectors,
                first=self.first_owner + start,
                device=self.device,
            )
            for name in loss.token_views
        }
        ctx = self.context(self.index[start:stop], (loss.path,), chunk)
        ctx = replace(ctx, vectors=no_vectors)
        made: TokenSums = self.assembly.calls(self.assembly.parts[loss.path], "sums", given, ctx)
        return made

    def _change(
        self,
        augmenters: list[BoundAugmenter],
        chunk: int,
        capture: GradientCapture,
        point: str,
        spans: Spans,
        values: Tensor,
    ) -> Tensor:
        """Return ``[T, E]`` values at a point, changed by the augmenters of each view in turn."""
        builder, values = self.setup.builder, capture.keep(point, values, spans)
        acting = [augmenter for augmenter in augmenters if augmenter.point == point]
        if not acting:
            return values
        changed = []
        for view, tokens, start, stop in spans:
            piece = values[start:stop]
            for augmenter in acting:
                if view.name in augmenter.views and stop > start:
                    modes = (augmenter.gradient or "fresh",)
                    ctx = self.context(place=(augmenter.planned.path, view.name), chunk=chunk)
                    ctx = replace(ctx, gradient=partial(look_up, self.fields, modes, point))
                    made = builder.augment(augmenter, piece, tokens, view, ctx, not self.off)
                    piece = made.to(piece.dtype)
            changed.append(piece)
        return torch.cat(changed)

    # -- what parts may ask for -------------------------------------------------------------

    def vectors_of(self, view: str, branch: str | None) -> dict[str, Embeddings]:
        """Return a view's vectors by a branch (None: its own), without gradient; encoded once."""
        if view not in self.views:
            raise KeyError(f"no view {view}")
        own = self.views[view].view
        if branch in (None, own.branch):
            return {level: rows.detach() for level, rows in self.vectors[view].items()}
        if (view, branch) not in self.extra:
            passes = self.assembly.composition.passes
            if not any(branch == each.branch and view in each.views for each in passes):
                what = f"asks for view {view} by branch {branch}, which no record encodes"
                raise RuntimeError(f"{what}: write encodes=(({view!r}, {branch!r}),) in its record")
            self.extra.update(self.gathering({(view, branch): self._encoded_by(view, branch)}))
        return self.extra[view, branch]

    def _encoded_by(self, view: str, branch: str) -> dict[str, Embeddings]:
        """Return this process's vectors of a view by another branch, without gradient."""
        pieces, keys, own = self.pieces[view], self.keys[view], self.views[view].view
        encoder = self.assembly.encoders[branch]
        with self.setup.precision.autocast():
            found = self.setup.builder.known(own, branch, self.index)
        if found is not None:
            vectors, lengths = (each.to(self.device, non_blocking=True) for each in found)
            key = keys[SENTENCE]
            return {SENTENCE: Embeddings(vectors, key.owner, key.slot, lengths)}
        if encoder.tokenizer is not self.assembly.encoders[own.branch].tokenizer:
            ctx = self.context(self.index)
            prepare = self.setup.builder.prepare
            pieces = self._cut(prepare(own, self.index, self.first_owner, ctx, encoder))
            keys = self._keys(pieces)
        unseen, label = GradientCapture(frozenset()), f"extra:{view}"
        with torch.no_grad(), self.setup.precision.autocast():
            calls = [
                self.call(branch, [view], i, unseen, {}, label, {view: pieces})[view]
                for i in self.numbers
            ]
        return join_chunks(calls, keys)

    def context(
        self, index: Tensor | None = None, place: tuple[str, ...] = (), chunk: int | None = None
    ) -> StepContext:
        """Return the context that parts see, with texts of ``[b]`` rows or of the whole batch.

        ``place`` is a part that has draws of its own, and the view that it changes; those of
        generators differ by chunk too.
        """
        seen = self.all_index if index is None else index
        inside = () if chunk is None else (chunk,)
        return StepContext(
            **vars(self.position),
            rows=self.rows,
            device=self.device,
            generator=draws(self.train.seed, self.position, self.rank, *place, *inside),
            uniform=uniform_draws(self.train.seed, self.position, 0, *place),
            vectors=self.vectors_of,
            beside=self._beside,
            gradient=partial(look_up, self.fields, ("fresh", "previous"), "word_embeddings"),
            texts=partial(self.setup.builder.rows.texts, index=seen),
            values=partial(self._values, seen),
            tokens=partial(self._tokens, seen),
            negatives=loss_negatives,
            log=partial(self.assembly.calls.log, self.logged),
        )

    def _beside(self, view: str, rows: Embeddings) -> dict[str, Tensor]:
        """Return the slots of a view's rows, and what other stores weigh their texts by."""
        found = {"slot": rows.slot}
        for branch in self.assembly.composition.side_branches:
            other = self.vectors_of(view, branch)[SENTENCE]
            ordered, order = torch.sort(number(other.owner, other.text))
            place = torch.searchsorted(ordered, number(rows.owner, rows.text))
            found[branch] = other.vectors[order[place]]
        return found

    def _tokens(self, index: Tensor, column: str) -> TokenBatch:
        """Return ``[B]`` rows of a column as content tokens of the run's tokenizer."""
        return self.setup.builder.rows.content(column, index, self.assembly.online.tokenizer)

    def _values(self, index: Tensor, column: str) -> Tensor:
        """Return ``[B]`` numbers of a column with a type."""
        kind = self.assembly.composition.needed_columns.types.get(column, "text")
        if kind == "text":
            what = f"column {column} has no type of numbers"
            raise RuntimeError(f'{what}: write reads = {{"{column}": "float"}} in the record')
        values = self.setup.builder.rows.values(column, kind)[index]
        return values.to(self.device, non_blocking=True)

    # -- backward ---------------------------------------------------------------------------

    def backward(
        self, value: Tensor, capture: GradientCapture, weights: Mapping[str, float]
    ) -> None:
        """Send the gradient back; chunk by chunk where the vectors are leaves.

        ``weights`` are those of the losses on token states, by name. A probe takes the gradient for
        the inputs alone, and no weight of the model gets one.
        """
        inputs_only = bool(self.off)
        if len(self.chunks) == 1:
            if value.requires_grad:
                capture.collect(backward_to_inputs([value], [None], capture.tensors, inputs_only))
            return
        leaves = list(self.leaves.values())
        found: Sequence[Tensor | None] = [None] * len(leaves)
        if value.requires_grad:
            found = backward_to_inputs([value], [None], leaves, inputs_only)
        elif not self.terms:
            return
        gradients = dict(zip(self.leaves, found, strict=True))
        for planned, names in self.of_the_objective():
            if planned.gradient:
                with torch.enable_grad(), self.setup.precision.autocast():
                    self._backward(planned.branch, names, gradients, capture, weights)

    def _backward(
        self,
        branch: str,
        names: list[str],
        gradients: Mapping[tuple[str, str], Tensor | None],
        capture: GradientCapture,
        weights: Mapping[str, float],
    ) -> None:
        """Encode each chunk again, and send its part of the gradients back."""
        done: dict[tuple[str, str], int] = {}
        for chunk in self.numbers:
            sums: dict[str, list[TokenSums]] = {}
            pieces = self.call(branch, names, chunk, capture, sums)
            roots: list[Tensor] = []
            seeds: list[Tensor | None] = []
            for name, (made,) in sums.items():
                if made.total.requires_grad:
                    roots.append(made.total * (weights[name] / self.terms[name].count))
                    seeds.append(None)
            for name, levels in pieces.items():
                for level, rows in levels.items():
                    start = done.get((name, level), 0)
                    done[name, level] = start + len(rows)
                    gradient = gradients.get((name, level))
                    if gradient is not None and rows.vectors.requires_grad:
                        roots.append(rows.vectors)
                        seeds.append(gradient[start : start + len(rows)])
            with torch.autocast(self.device.type, enabled=False):
                found = backward_to_inputs(roots, seeds, capture.tensors, bool(self.off))
                capture.collect(found)
