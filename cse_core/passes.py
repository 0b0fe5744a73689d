"""One pass of a step: its views, its encoder calls, and the gradients' way back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from cse_core import distributed
from cse_core.assembly import Assembly, PlacedAugmenter
from cse_core.composition import Role
from cse_core.gradients import GradientCapture, GradientField
from cse_core.options import StoreOptions
from cse_core.precision import Precision
from cse_core.randomness import derive_seed, generator
from cse_core.rows import TrainingRows
from cse_core.types import INPUT, Embeddings, StepContext, TokenBatch, View
from cse_core.views import ViewBuilder

Levels = dict[str, dict[str, Embeddings]]
Fields = Mapping[tuple[str, str], GradientField]
Spans = list[tuple[str, TokenBatch, int, int]]


@dataclass(frozen=True)
class Moment:
    """Where a run is: what every draw depends on."""

    step: int
    total_steps: int
    epoch: int
    round: int


@dataclass(frozen=True)
class Frame:
    """What all passes of a round share."""

    assembly: Assembly
    rows: TrainingRows
    builder: ViewBuilder
    precision: Precision
    input_level: bool


class Pass:
    """One pass over a batch.

    Args:
        frame: What all passes of the round share.
        index: ``[b]`` rows of the round that this process encodes.
        rows: ``[B]`` corpus rows of the batch, over all processes.
        moment: Where the run is.
        first_owner: Batch row of this process's first row.
        logged: Where parts' scalars go.
    """

    def __init__(
        self,
        frame: Frame,
        index: Tensor,
        rows: Tensor,
        moment: Moment,
        first_owner: int,
        logged: dict[str, Tensor | float],
    ) -> None:
        self.frame = frame
        self.assembly = frame.assembly
        self.device = frame.assembly.device
        self.train = frame.assembly.composition.train
        self.index = index
        self.rows = rows
        self.moment = moment
        self.first_owner = first_owner
        self.logged = logged
        self.fields: Fields = {}
        self.off: frozenset[str] = frozenset()
        self.passes_done = False
        self.extra: dict[tuple[str, str], dict[str, Embeddings]] = {}
        self.vectors: Levels = {}
        self.leaves: list[tuple[str, str, Tensor]] = []
        self.views = frame.builder.build(
            index, rows[first_owner : first_owner + len(index)], self.context()
        )
        self.roles: dict[str, Role] = {n: each.view.role for n, each in self.views.items()}
        self.tokens = sum(len(each.tokens.ids) for each in self.views.values())
        size = self.train.chunk_size or len(index)
        self.chunks = [(s, s + size) for s in range(0, max(len(index), 1), max(size, 1))]

    def trial(self, off: frozenset[str]) -> Pass:
        """Return the same work with augmenters off and its own, unused, log."""
        trial = object.__new__(Pass)
        trial.__dict__.update(self.__dict__)
        trial.off, trial.logged, trial.extra, trial.vectors, trial.leaves = off, {}, {}, {}, []
        return trial

    # -- encoding ---------------------------------------------------------------------------

    def encode(self, capture: GradientCapture) -> Levels:
        """Encode every view by its own branch, and the extra passes that parts asked for."""
        cached = len(self.chunks) > 1
        local: Levels = {}
        for branch in self._branches():
            names = [name for name, each in self.views.items() if each.view.branch == branch]
            trainable = self.assembly.branches[branch].trainable
            pieces = []
            for number in range(len(self.chunks)):
                with torch.set_grad_enabled(trainable and not cached):
                    pieces.append(self._embed(branch, names, number, f"main:{branch}", capture))
            for name in names:
                local[name] = _join([piece[name] for piece in pieces])
                if cached and trainable:
                    local[name] = self._as_leaves(name, local[name])
        self.vectors = {
            name: {level: distributed.gather(each) for level, each in levels.items()}
            for name, levels in local.items()
        }
        for view, branch in () if self.off else self._declared():
            self.vectors_of(view, branch)
        return self.vectors

    def _branches(self) -> list[str]:
        return list(dict.fromkeys(each.view.branch for each in self.views.values()))

    def _declared(self) -> Iterator[tuple[str, str]]:
        for choice in self.assembly.composition.of("negatives"):
            options = choice.options
            if isinstance(options, StoreOptions) and options.branch and options.view in self.views:
                yield options.view, options.branch

    def _as_leaves(self, view: str, levels: dict[str, Embeddings]) -> dict[str, Embeddings]:
        leaves = {}
        for level, each in levels.items():
            leaf = each.vectors.detach()
            if level != INPUT:
                leaf.requires_grad_(True)
                self.leaves.append((view, level, leaf))
            leaves[level] = replace(each, vectors=leaf)
        return leaves

    def _embed(
        self,
        branch: str,
        names: list[str],
        chunk: int,
        label: str,
        capture: GradientCapture | None,
    ) -> dict[str, dict[str, Embeddings]]:
        """Encode the chunk of several views in one encoder call."""
        stack = self.assembly.stacks[branch]
        pieces = [self.views[name].of_owners(*self.chunks[chunk]) for name in names]
        bases, base = [], 0
        for name in names:
            bases.append(base)
            base += len(self.views[name].owner)
        joined = TokenBatch.join(
            [
                replace(piece, owner=piece.owner + base)
                for piece, base in zip(pieces, bases, strict=True)
            ]
        )
        moment = self.moment
        rank = distributed.world()[0]
        self.assembly.dropout.seed(
            derive_seed(self.train.seed, moment.round, moment.step, "dropout", label, chunk, rank)
        )
        spans, start = [], 0
        for name, piece in zip(names, pieces, strict=True):
            stop = start + len(piece.ids)
            spans.append((name, piece.to(self.device), start, stop))
            start = stop

        def change(point: str, values: Tensor) -> Tensor:
            if capture is not None:
                values = capture.keep(point, values, spans)
            return self._augment(point, values, spans, stack.encoder.embedding_size)

        with self.frame.precision.autocast():
            levels = stack.embed(
                joined,
                self.device,
                on_words=partial(change, "word_embeddings"),
                on_input=partial(change, "input_embeddings"),
                input_level=self.frame.input_level,
            )
        views: Levels = {name: {} for name in names}
        for level, each in levels.items():
            start = 0
            for name, base, piece in zip(names, bases, pieces, strict=True):
                stop = start + stack.count(piece, level)
                views[name][level] = self._of_view(name, base, each, slice(start, stop))
                start = stop
        return views

    def _of_view(self, name: str, base: int, joint: Embeddings, rows: slice) -> Embeddings:
        """Return one view's rows of a joint call, with batch rows as owners."""
        prepared = self.views[name]
        text = joint.owner[rows] - base
        slot, vectors = joint.slot[rows], joint.vectors[rows]
        if not prepared.own_rows:
            slot = slot + _repeats(prepared.owner).to(self.device)[text] * _SLOTS
        owner = text if prepared.own_rows else prepared.owner.to(self.device)[text]
        return Embeddings(
            vectors if vectors.dtype.itemsize >= 4 else vectors.float(),
            owner + self.first_owner,
            slot,
            joint.length[rows],
        )

    def _augment(self, point: str, values: Tensor, spans: Spans, size: int) -> Tensor:
        chosen = [
            each
            for each in self.assembly.augmenters
            if each.point == point and each.choice.path not in self.off
        ]
        if not any(name in each.views for each in chosen for name, *_ in spans):
            return values
        changed = []
        for name, tokens, start, stop in spans:
            piece = values[start:stop]
            for each in chosen:
                if name in each.views and stop > start:
                    piece = self._apply(each, piece, tokens, self.views[name].view)
            changed.append(piece)
        return torch.cat(changed)

    def _apply(
        self, each: PlacedAugmenter, values: Tensor, tokens: TokenBatch, view: View
    ) -> Tensor:
        ctx = replace(self.context(), gradient=partial(self._gradient, each.point))
        changed: Tensor = each.part(values, tokens, view, ctx)
        if self.moment.step < 10 and not self.off:
            self.frame.builder.watch(each, bool(torch.equal(changed, values)))
        return changed.to(values.dtype)

    def _gradient(self, point: str, view: View, tokens: TokenBatch) -> Tensor | None:
        known = self.fields.get((point, view.name)) or self.fields.get((point, "anchor"))
        return None if known is None else known.at(tokens)

    # -- what parts may ask for -------------------------------------------------------------

    def vectors_of(self, view: str, branch: str) -> dict[str, Embeddings]:
        """Return a view's vectors by a branch, without gradient; encoded once."""
        if view not in self.views:
            raise KeyError(f"there is no view {view}")
        if self.views[view].view.branch == branch:
            return {level: each.detach() for level, each in self.vectors[view].items()}
        if (view, branch) not in self.extra:
            if self.passes_done:
                raise RuntimeError(
                    f"view {view} of branch {branch} was not asked for before the weights moved"
                )
            with torch.no_grad():
                own = self.views[view]
                stack = self.assembly.stacks[branch]
                if stack.tokenizer is not self.assembly.stack.tokenizer:
                    self.views[f"{view}@{branch}"] = self.frame.builder.prepare(
                        own.view, self.index, self.context(), stack
                    )
                name = f"{view}@{branch}" if f"{view}@{branch}" in self.views else view
                pieces = [
                    self._embed(branch, [name], chunk, f"extra:{view}:{branch}", None)[name]
                    for chunk in range(len(self.chunks))
                ]
                self.views.pop(f"{view}@{branch}", None)
            self.extra[view, branch] = {
                level: distributed.gather(each) for level, each in _join(pieces).items()
            }
        return self.extra[view, branch]

    def context(self) -> StepContext:
        """Return the context that parts see."""
        moment = self.moment
        rank = distributed.world()[0]

        def draws(
            name: str, *, shared: bool = True, device: torch.device | str = "cpu"
        ) -> torch.Generator:
            who = "shared" if shared else f"rank {rank}"
            return generator(
                torch.device(device), self.train.seed, moment.round, moment.step, "part", name, who
            )

        return StepContext(
            step=moment.step,
            total_steps=moment.total_steps,
            epoch=moment.epoch,
            round=moment.round,
            rows=self.rows,
            device=self.device,
            generator=draws,
            vectors=self.vectors_of,
            gradient=partial(self._gradient, "word_embeddings"),
            texts=lambda column: self.frame.rows.texts(column, self.index),
            log=self.logged.__setitem__,
        )

    # -- backward ---------------------------------------------------------------------------

    def backward(
        self, value: Tensor, capture: GradientCapture, *, inputs_only: bool = False
    ) -> None:
        """Send the gradient back; chunk by chunk where the vectors are leaves."""
        if len(self.chunks) == 1:
            self._send([value], [None], capture, inputs_only)
            return
        wanted = [leaf for _, _, leaf in self.leaves]
        if inputs_only:
            gradients: list[Tensor | None] = list(
                torch.autograd.grad(value, wanted, allow_unused=True)
            )
        else:
            value.backward()  # type: ignore[no-untyped-call]
            gradients = [leaf.grad for leaf in wanted]
        of_leaf = {
            (view, level): gradient
            for (view, level, _), gradient in zip(self.leaves, gradients, strict=True)
        }
        for branch in self._branches():
            if not self.assembly.branches[branch].trainable:
                continue
            names = [n for n, each in self.views.items() if each.view.branch == branch]
            done: dict[tuple[str, str], int] = {}
            for chunk in range(len(self.chunks)):
                with torch.enable_grad():
                    pieces = self._embed(branch, names, chunk, f"main:{branch}", capture)
                roots, seeds = [], []
                for name, levels in pieces.items():
                    for level, each in levels.items():
                        start = done.get((name, level), 0)
                        done[name, level] = start + len(each)
                        gradient = of_leaf.get((name, level))
                        if gradient is not None and len(each) and each.vectors.requires_grad:
                            roots.append(each.vectors)
                            seeds.append(gradient[start : start + len(each)])
                self._send(roots, seeds, capture, inputs_only)

    def _send(
        self,
        roots: list[Tensor],
        seeds: list[Any],
        capture: GradientCapture,
        inputs_only: bool,
    ) -> None:
        kept = capture.tensors
        if not roots:
            capture.collect([None] * len(kept))
        elif inputs_only:
            capture.collect(torch.autograd.grad(roots, kept, seeds, allow_unused=True))
        else:
            for tensor in kept:
                tensor.retain_grad()
            torch.autograd.backward(roots, seeds)
            capture.collect([tensor.grad for tensor in kept])


def _join(pieces: list[dict[str, Embeddings]]) -> dict[str, Embeddings]:
    if len(pieces) == 1:
        return pieces[0]
    return {
        level: Embeddings(
            torch.cat([piece[level].vectors for piece in pieces]),
            torch.cat([piece[level].owner for piece in pieces]),
            torch.cat([piece[level].slot for piece in pieces]),
            torch.cat([piece[level].length for piece in pieces]),
        )
        for level in pieces[0]
    }


_SLOTS = 2**10
"""Room for the slots of one text, where a batch row has several texts in a view."""


def _repeats(owner: Tensor) -> Tensor:
    """Return ``[R]`` how many earlier rows have the same owner."""
    order = torch.argsort(owner, stable=True)
    ordered = owner[order]
    first = torch.searchsorted(ordered, ordered)
    repeats = torch.empty_like(owner)
    repeats[order] = torch.arange(len(owner)) - first
    return repeats
