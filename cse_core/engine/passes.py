"""One pass of a step: its views, its encoder calls, and the gradients' way back."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from cse_core.engine.assembly import Assembly
from cse_core.engine.encoder_call import Call, Levels
from cse_core.engine.input_gradients import Fields, GradientCapture
from cse_core.engine.objective import ALIGNED_ROLES
from cse_core.engine.perturbation import EMBEDDINGS, Perturbation, look_up
from cse_core.engine.views import PreparedView, ViewBuilder
from cse_core.options import StoreOptions
from cse_core.recipes.settings import TrainOptions
from cse_core.records import StoreSpec
from cse_core.runtime import distributed
from cse_core.runtime.device import Precision
from cse_core.runtime.seeds import StepPosition, derive_seed, draws
from cse_core.tokenization.training_rows import TrainingRows
from cse_core.types import INPUT, Embeddings, StepContext
from cse_core.vocabulary import Role

__all__ = ["RoundSetup", "StepPosition", "Pass"]


@dataclass(frozen=True)
class RoundSetup:
    """What all passes of a round share."""

    assembly: Assembly
    rows: TrainingRows
    builder: ViewBuilder
    train: TrainOptions
    precision: Precision
    input_level: bool


class Pass:
    """One pass over a batch.

    Args:
        setup: What all passes of the round share.
        index: ``[B]`` rows of the round, over all processes; each encodes its own share.
        position: Where the run is.
        logged: Where parts' scalars go.
        fields: Gradients of the inputs by mode (``fresh``, ``previous``), point and view.
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
        self.assembly = setup.assembly
        self.device = setup.assembly.device
        self.train = setup.train
        self.rank, self.size = distributed.world()
        start, stop = distributed.share(len(index), self.rank, self.size)
        self.all_index, self.index, self.first_owner = index, index[start:stop], start
        self.rows = setup.rows.corpus_row[index]
        self.position = position
        self.fields = fields or {}
        self.off: frozenset[str] = frozenset()
        self.fixed: Levels = {}
        self._begin(logged)
        self.views = setup.builder.build(
            self.index, self.rows[start:stop], self.context(self.index)
        )
        self.roles: dict[str, Role] = {n: each.view.role for n, each in self.views.items()}
        self.tokens = sum(len(each.tokens.ids) for each in self.views.values())
        size = min(self.train.chunk_size or len(self.index), len(self.index))
        self.chunks = [(s, s + size) for s in range(0, max(len(self.index), 1), max(size, 1))]

    def _begin(self, logged: dict[str, Tensor | float]) -> None:
        self.logged = logged
        self.over = False
        self.extra: dict[tuple[str, str], dict[str, Embeddings]] = {}
        self.vectors: Levels = {}
        self.leaves: list[tuple[str, str, Tensor]] = []

    def trial(self, off: frozenset[str]) -> Pass:
        """Return the same work with augmenters off and its own, unused, log."""
        trial = copy.copy(self)
        trial.off = off
        trial._begin({})
        return trial

    def take_over(self, trial: Pass) -> None:
        """Keep what a trial encoded without gradient and would encode to the same again."""
        changed = self._changed_by(trial.off)
        self.extra.update({key: e for key, e in trial.extra.items() if key[0] not in changed})
        self.fixed = {name: e for name, e in trial.fixed.items() if name not in changed}

    def _changed_by(self, off: frozenset[str]) -> set[str]:
        chosen = [each for each in self.assembly.augmenters if each.choice.path in off]
        return {view for each in chosen for view in each.views}

    # -- encoding ---------------------------------------------------------------------------

    def encode(self, capture: GradientCapture) -> Levels:
        """Encode every view by its own branch, and the extra passes that parts asked for."""
        cached = len(self.chunks) > 1
        local: Levels = {}
        for branch, names in self._branches().items():
            trainable = self.assembly.branches[branch].trainable
            if not trainable and all(name in self.fixed for name in names):
                local.update({name: self.fixed[name] for name in names})
                continue
            with torch.set_grad_enabled(trainable and not cached), self._casts():
                pieces = [
                    self._embed(branch, names, number, f"main:{branch}", capture)
                    for number in range(len(self.chunks))
                ]
            for name in names:
                local[name] = _join([piece[name] for piece in pieces])
                if not trainable:
                    self.fixed[name] = local[name]
                elif cached:
                    local[name] = self._as_leaves(name, local[name])
        if self.size == 1:
            self.vectors = self._with_shared_keys(local)
        else:
            self.vectors = {name: _gathered(levels) for name, levels in local.items()}
        for view, branch in () if self.off else self._declared():
            self.vectors_of(view, branch)
        return self.vectors

    def _branches(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, each in self.views.items():
            found.setdefault(each.view.branch, []).append(name)
        return found

    def _declared(self) -> Iterator[tuple[str, str]]:
        for choice in self.assembly.composition.of("negatives"):
            options = choice.options
            if isinstance(options, StoreOptions) and options.branch:
                for view in cast(StoreSpec, choice.spec).encoded(options):
                    if view in self.views:
                        yield view, options.branch

    def _as_leaves(self, view: str, levels: dict[str, Embeddings]) -> dict[str, Embeddings]:
        leaves = {}
        for level, each in levels.items():
            leaf = each.vectors.detach()
            if level != INPUT:
                leaf.requires_grad_(True)
                self.leaves.append((view, level, leaf))
            leaves[level] = replace(each, vectors=leaf)
        return leaves

    def _with_shared_keys(self, local: Levels) -> Levels:
        """Give views of equal keys the anchor's very keys, so that nobody compares on a GPU."""
        anchor, levels = self.views["anchor"], local["anchor"]
        for name, each in self.views.items():
            if name == "anchor" or each.view.role not in ALIGNED_ROLES:
                continue
            same_rows = each.own_rows and each.has_rows_of(anchor)
            same_texts = same_rows or (each.own_rows and each.has_owners_of(anchor))
            for level, found in local[name].items():
                by_row = self._slice_level(name) in (None, level)
                if level in levels and (same_rows if by_row else same_texts):
                    keys = levels[level]
                    local[name][level] = replace(found, owner=keys.owner, slot=keys.slot)
        return local

    def _slice_level(self, view: str) -> str | None:
        slicer = self.assembly.encoders[self.views[view].view.branch].slicer
        return None if slicer is None else slicer.level

    def _embed(
        self,
        branch: str,
        names: list[str],
        chunk: int,
        label: str,
        capture: GradientCapture | None,
        views: Mapping[str, PreparedView] | None = None,
    ) -> Levels:
        """Encode the chunk of several views in one encoder call."""
        position, sentence_encoder = self.position, self.assembly.encoders[branch]
        self.assembly.dropout.seed(
            derive_seed(
                self.train.seed, position.round, position.step, "dropout", label, chunk, self.rank
            )
        )
        known = self.views if views is None else views
        own = sentence_encoder.tokenizer is self.assembly.online.tokenizer
        change = Perturbation(
            augmenters=[
                each
                for each in self.assembly.augmenters
                if own
                and each.point in EMBEDDINGS
                and each.choice.path not in self.off
                and any(name in each.views for name in names)
            ],
            views=known,
            builder=self.setup.builder,
            context=self.context,
            draws=lambda path, view: draws(self.train.seed, position, self.rank, path, view, chunk),
            fields=self.fields,
            capture=capture,
            watch=not self.off,
        )
        return Call(
            sentence_encoder=sentence_encoder,
            views={name: known[name] for name in names},
            owners=self.chunks[chunk],
            first_owner=self.first_owner,
            device=self.device,
            precision=self.setup.precision,
            input_level=self.setup.input_level,
            change=None if change.idle() else change,
        ).run()

    # -- what parts may ask for -------------------------------------------------------------

    def vectors_of(self, view: str, branch: str | None) -> dict[str, Embeddings]:
        """Return a view's vectors by a branch (None: its own), without gradient; encoded once."""
        if view not in self.views:
            raise KeyError(f"there is no view {view}")
        own = self.views[view]
        if branch in (None, own.view.branch):
            return {level: each.detach() for level, each in self.vectors[view].items()}
        if (view, branch) not in self.extra:
            if self.over:
                raise RuntimeError(
                    f"view {view} of branch {branch} was not asked for before the weights moved"
                )
            sentence_encoder = self.assembly.encoders[branch]
            if sentence_encoder.tokenizer is not self.assembly.encoders[own.view.branch].tokenizer:
                own = self.setup.builder.prepare(
                    own.view, self.index, self.context(self.index), sentence_encoder
                )
            label = f"extra:{view}:{branch}"
            with torch.no_grad(), self._casts():
                pieces = [
                    self._embed(branch, [view], chunk, label, None, {view: own})[view]
                    for chunk in range(len(self.chunks))
                ]
            self.extra[view, branch] = _gathered(_join(pieces))
        return self.extra[view, branch]

    def context(self, index: Tensor | None = None) -> StepContext:
        """Return the context that parts see.

        Args:
            index: ``[b]`` rows whose texts they see; by default those of the whole batch.
        """
        position = self.position
        seen = self.all_index if index is None else index
        return StepContext(
            step=position.step,
            total_steps=position.total_steps,
            epoch=position.epoch,
            round=position.round,
            rows=self.rows,
            device=self.device,
            generator=draws(self.train.seed, position, self.rank),
            vectors=self.vectors_of,
            gradient=partial(look_up, self.fields, ("fresh", "previous"), "word_embeddings"),
            texts=partial(self.setup.rows.texts, index=seen),
            log=self.logged.__setitem__,
        )

    # -- backward ---------------------------------------------------------------------------

    def backward(
        self, value: Tensor, capture: GradientCapture, *, inputs_only: bool = False
    ) -> None:
        """Send the gradient back; chunk by chunk where the vectors are leaves."""
        if not value.requires_grad:
            return
        if len(self.chunks) == 1:
            _send([value], [None], capture, inputs_only)
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
        for branch, names in self._branches().items():
            if not self.assembly.branches[branch].trainable:
                continue
            with torch.enable_grad(), self._casts():
                self._backward(branch, names, of_leaf, capture, inputs_only)

    def _backward(
        self,
        branch: str,
        names: list[str],
        of_leaf: Mapping[tuple[str, str], Tensor | None],
        capture: GradientCapture,
        inputs_only: bool,
    ) -> None:
        """Encode each chunk again, and send its part of the vectors' gradients back."""
        done: dict[tuple[str, str], int] = {}
        for chunk in range(len(self.chunks)):
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
            with torch.autocast(self.device.type, enabled=False):
                _send(roots, seeds, capture, inputs_only)

    def _casts(self) -> AbstractContextManager[None]:
        """Return a context in which weights are cast once for all chunks.

        All its chunks are encoded either with gradient or without: a cast that was made without
        one carries none back to the weights.
        """
        return self.setup.precision.autocast()


def _send(
    roots: list[Tensor], seeds: list[Any], capture: GradientCapture, inputs_only: bool
) -> None:
    kept = capture.tensors
    if not roots or (inputs_only and not kept):
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
    return {level: Embeddings.join([piece[level] for piece in pieces]) for level in pieces[0]}


def _gathered(levels: dict[str, Embeddings]) -> dict[str, Embeddings]:
    return {level: distributed.gather(each) for level, each in levels.items()}
