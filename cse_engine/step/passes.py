"""Encoder passes per step, as the plan has them: the batch, encoder calls, their backward."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from cse_core.capabilities import Role
from cse_core.errors import CseError
from cse_core.functional import derive_seed
from cse_core.options import TransformOptions
from cse_core.protocols import Tokenizer
from cse_core.types import INPUT, SENTENCE, Embeddings, TokenStates, TokenSums
from cse_engine.compose.composition import PlannedPart, PlannedPass
from cse_engine.compose.settings import TrainOptions
from cse_engine.runtime import distributed
from cse_engine.runtime.device import Precision
from cse_engine.runtime.seeds import StepPosition
from cse_engine.step.context import Context
from cse_engine.step.encoding import Levels, encode_views
from cse_engine.step.input_gradients import Fields, GradientCapture, Spans, look_up
from cse_engine.step.objective import Objective, Term
from cse_engine.step.row_keys import KeysOnDevice, RowKeys, gather_views, join_chunks
from cse_engine.step.sentence_encoder import SentenceEncoder
from cse_engine.step.views import PreparedView, ViewBuilder

EMBEDDINGS = ("word_embeddings", "input_embeddings")
"""Points at which embeddings are changed and watched."""
Pieces = list[PreparedView]
"""The rows of a view, those of each chunk apart."""
Rows = Mapping[str, Pieces]
Keys = Mapping[str, Mapping[str, RowKeys]]
"""Row keys of each view by level, in the order in which its rows are encoded."""
Extra = dict[tuple[str, str], dict[str, Embeddings]]
"""Vectors by view, branch and level."""
Sums = dict[str, list[TokenSums]]
"""What losses on token states make of each chunk, by their names."""


@dataclass(frozen=True)
class PreparedBatch:
    """The rows of a step, ready for the encoder.

    Attributes:
        ctx: Context of the whole batch, before anything is encoded.
        local: That of the rows of this process.
        views: The views of these.
        chunks: First and last batch row of each chunk; all processes have as many.
        pieces: The rows of each view by chunk.
        keys: Row keys of these.
        on_device: Copies row keys to the device.
        gather: Joins vectors over the processes.
        lists: Texts of the longest list of the batch, for each view that has all texts.
    """

    ctx: Context
    local: Context
    views: dict[str, PreparedView]
    chunks: list[tuple[int, int]]
    pieces: Rows
    keys: Keys
    on_device: KeysOnDevice
    gather: Callable[[Extra], Extra]
    lists: Mapping[str, int]

    @property
    def roles(self) -> dict[str, Role]:
        """The role of each view."""
        return {name: prepared.view.role for name, prepared in self.views.items()}


@dataclass
class Encoded:
    """What a pass over a batch encodes.

    Attributes:
        look_up: ``Passes.vectors``.
        logged: Takes the scalars that parts log.
        capture: Takes the gradients of the inputs.
        gradients: Those that augmenters ask for, by ``fresh`` and ``previous``.
        off: Paths of augmenters that are off: the pass is only for gradients of the inputs.
        local: Vectors of this process by view and level.
        vectors: The same over all processes, with gradient.
        levels: The same as transforms leave them.
        extra: Vectors of views by other branches.
        terms: Losses on token states by name.
        leaves: Vectors that end the graph of the objective where rows come in chunks.
    """

    batch: PreparedBatch
    look_up: Callable[[Encoded, str, str | None], dict[str, Embeddings]]
    logged: dict[str, Tensor | float] = field(default_factory=dict)
    capture: GradientCapture = field(default_factory=GradientCapture)
    gradients: Mapping[str | None, Fields] = field(default_factory=dict)
    off: frozenset[str] = frozenset()
    local: Levels = field(default_factory=dict)
    vectors: Levels = field(default_factory=dict)
    levels: Levels = field(default_factory=dict)
    extra: Extra = field(default_factory=dict)
    terms: dict[str, Term] = field(default_factory=dict)
    leaves: dict[tuple[str, str], Tensor] = field(default_factory=dict)

    @property
    def ctx(self) -> Context:
        """The context of the whole batch."""
        return self.narrow(self.batch.ctx)

    def narrow(self, ctx: Context) -> Context:
        """Let a context of the batch see what this pass encodes, and log where it does."""
        return ctx.replace(encode=partial(self.look_up, self), logged=self.logged)


@dataclass
class Passes:
    """The encoder passes of a round's steps.

    Attributes:
        builder: Makes the views of a batch.
        train: ``train.*`` of the round.
        precision: Number format of the encoder.
        input_level: Whether some part reads level ``input``.
        token_losses: Losses of the round on token states.
        scale: Scales what is sent back, in fp16; None leaves it as it is.
    """

    builder: ViewBuilder
    train: TrainOptions
    precision: Precision
    input_level: bool
    token_losses: tuple[PlannedPart, ...]
    scale: Callable[[Tensor], Tensor] | None = None

    def __post_init__(self) -> None:
        self.assembly, self.device = self.builder.assembly, self.builder.assembly.device
        self.rank, self.size = distributed.rank_and_size()
        for loss in self.token_losses:
            if loss.whole_batch and self.size > 1:
                what = f"compares token states of all rows, which {self.size} processes keep apart"
                raise CseError(what, where=loss.path, hint="train in one process")

    def prepare(
        self, index: Tensor, position: StepPosition, logged: dict[str, Tensor | float]
    ) -> PreparedBatch:
        """Make the views of the ``[B]`` rows of a batch; each process has its own share of them."""
        count, views = len(index), self.assembly.composition.views
        given: dict[str, Any] = {
            "assembly": self.assembly,
            "training": self.builder.rows,
            "seed": self.train.seed,
            "rank": self.rank,
            "rows": self.builder.rows.corpus_row[index],
            "device": self.device,
        }
        ctx = Context(**vars(position), **given, index=index, logged=logged)
        first, stop = distributed.share(count, self.rank, self.size)
        local = ctx.replace(index=index[first:stop], first=first)
        prepared = self.builder.build(local)
        # The first process has most rows: all make as many calls, whose last may have no rows.
        _, most = distributed.share(count, 0, self.size)
        size = max(min(self.train.chunk_size or most, most), 1)
        chunks = [(start, start + size) for start in range(first, first + max(most, 1), size)]
        encoders = self.assembly.encoders
        pieces = {n: _cut(v, chunks, encoders[v.view.branch]) for n, v in prepared.items()}
        on_device, whole = KeysOnDevice(self.device), None
        keys = {name: self._keys(piece, on_device) for name, piece in pieces.items()}
        online, lists = self.assembly.online, self.builder.lengths(ctx)
        made = any(view.made_by for view in views)
        if not (online.slicer or online.several or lists or made):
            whole = on_device.of(torch.arange(count), torch.zeros(count, dtype=torch.int64))
        gather = partial(gather_views, batch=count, keys=whole)
        return PreparedBatch(ctx, local, prepared, chunks, pieces, keys, on_device, gather, lists)

    def _keys(self, pieces: Pieces, on_device: KeysOnDevice) -> dict[str, RowKeys]:
        parts = {level: [p.unit_keys(level) for p in pieces] for level in pieces[0].units}
        parts[SENTENCE] = [piece.text_keys() for piece in pieces]
        parts[self.assembly.online.row_level] = [(p.tokens.owner, p.tokens.slot) for p in pieces]
        keys = {
            level: on_device.of(*map(torch.cat, zip(*of_pieces, strict=True)))
            for level, of_pieces in parts.items()
        }
        return {**keys, INPUT: keys[SENTENCE]}

    # -- encoding ---------------------------------------------------------------------------

    def encode(self, batch: PreparedBatch, probe: Encoded | None = None, **how: Any) -> Encoded:
        """Encode every view by its own branch, and what other branches encode for parts.

        What a ``probe`` encoded without gradient and would encode to the same again is kept; how
        are fields of ``Encoded``.
        """
        encoded, composition = Encoded(batch, self.vectors, **how), self.assembly.composition
        kept: Levels = {}
        if probe is not None:
            changed = {v.name for v in composition.views if not probe.off.isdisjoint(v.augmenters)}
            kept = {name: v for name, v in probe.local.items() if name not in changed}
            encoded.extra = {k: v for k, v in probe.extra.items() if k[0] not in changed}
        cached = len(batch.chunks) > 1
        sums: Sums = {}
        for planned, pieces in self._own_passes(encoded):
            if not planned.gradient and pieces.keys() <= kept.keys():
                encoded.local |= {name: kept[name] for name in pieces}
                continue
            # Weights are cast once for all chunks, which are encoded either with gradient or
            # without: a cast that was made without one carries none back to the weights.
            with torch.set_grad_enabled(planned.gradient and not cached):
                made = self._chunks(encoded, planned.branch, pieces, batch.keys, sums)
            if planned.gradient and cached:
                for name, levels in made.items():
                    made[name] = {level: rows.detach() for level, rows in levels.items()}
                    encoded.leaves |= {
                        (name, level): rows.vectors.requires_grad_(True)
                        for level, rows in made[name].items()
                        if level != INPUT
                    }
            encoded.local |= made
        asked = {
            (name, planned.branch): None
            for planned in (() if encoded.off else composition.passes)
            for name in planned.views
            if name in batch.views and batch.views[name].view.branch != planned.branch
        }
        also = {key: self._by(encoded, *key) for key in asked if key not in encoded.extra}
        local = {(name, ""): levels for name, levels in encoded.local.items()}
        whole = batch.gather({**local, **also})
        encoded.vectors = {name: whole[name, ""] for name in encoded.local}
        encoded.extra |= {key: whole[key] for key in also}
        encoded.terms = {name: Term.of(parts) for name, parts in sums.items()}
        encoded.levels = self.transformed(encoded)
        return encoded

    def _chunks(
        self, encoded: Encoded, branch: str, pieces: Rows, keys: Keys, sums: Sums | None = None
    ) -> Levels:
        """Encode views chunk by chunk, and join the chunks of each."""
        with self.precision.autocast():
            calls = [
                self.call(encoded, branch, pieces, chunk, sums)
                for chunk in range(len(encoded.batch.chunks))
            ]
        return {name: join_chunks([call[name] for call in calls], keys[name]) for name in pieces}

    def transformed(self, encoded: Encoded) -> Levels:
        """Return the vectors of a pass by view and level as transforms leave them."""
        vectors = dict(encoded.vectors)
        with torch.autocast(self.device.type, enabled=False):
            for planned in self.assembly.composition.of("transform"):
                level = cast(TransformOptions, planned.options).level
                views = {view: levels[level] for view, levels in vectors.items() if level in levels}
                part = self.assembly.parts[planned.path]
                changed = self.assembly.calls(part, "__call__", views, encoded.ctx)
                vectors |= {view: {**vectors[view], level: changed[view]} for view in changed}
        return vectors

    def _own_passes(self, encoded: Encoded) -> Iterator[tuple[PlannedPass, Rows]]:
        """Yield one pass of each branch, and the branch's own views that are there."""
        done = set()
        for planned in self.assembly.composition.passes:
            pieces = {
                name: encoded.batch.pieces[name]
                for name, prepared in encoded.batch.views.items()
                if name in planned.views and prepared.view.branch == planned.branch
            }
            if pieces and planned.branch not in done and (encoded.off or not planned.off):
                done.add(planned.branch)
                yield planned, pieces

    def call(
        self, encoded: Encoded, branch: str, pieces: Rows, chunk: int, sums: Sums | None
    ) -> Levels:
        """Encode a chunk of several views in one encoder call of a branch.

        ``sums`` take what losses on the views' token states make of them. Without, the call is one
        for other parts, whose dropout masks are its own.
        """
        encoder, batch = self.assembly.encoders[branch], encoded.batch
        views = {name: rows[chunk] for name, rows in pieces.items()}
        kind = f"extra:{next(iter(views))}" if sums is None else "main"
        self._seed_dropout(batch, f"{kind}:{branch}", chunk)
        change = self._change(encoded, encoder.tokenizer, views, chunk)
        reading = [x for x in self.token_losses if {*x.token_views} & {*views} and sums is not None]
        first = batch.chunks[chunk][0] if reading else None
        parts: list[Any] = [self.assembly.parts[loss.path] for loss in reading]
        layers = {layer for part in parts for layer in part.layers}
        given = encoder, views, self.device, self.input_level, change
        levels, states = encode_views(*given, first, sorted(layers))
        if sums is not None:
            for loss in reading:
                sums.setdefault(loss.name, []).append(self._sums(encoded, loss, states, chunk))
        return levels

    def _seed_dropout(self, batch: PreparedBatch, name: str, chunk: int) -> None:
        place = (batch.ctx.round, batch.ctx.step, "dropout", name, chunk, self.rank)
        self.assembly.dropout.seed(derive_seed(self.train.seed, *place))

    def _sums(
        self, encoded: Encoded, loss: PlannedPart, states: Mapping[str, TokenStates], chunk: int
    ) -> TokenSums:
        """Call a loss on token states with a chunk's rows."""
        batch = encoded.batch
        self._seed_dropout(batch, loss.path, chunk)
        start, stop = batch.chunks[chunk]
        given = {name: states[name] for name in loss.token_views}
        first = batch.local.first
        index = batch.local.index[start - first : stop - first]
        # The vectors of the whole batch are not there yet: it has those of its rows.
        ctx = encoded.ctx.replace(encode=None, index=index, place=(loss.path,), chunk=(chunk,))
        made: TokenSums = self.assembly.calls(self.assembly.parts[loss.path], "sums", given, ctx)
        return made

    def _change(
        self, encoded: Encoded, tokenizer: Tokenizer, views: Iterable[str], chunk: int
    ) -> Callable[[str, Spans, Tensor], Tensor] | None:
        """Return what changes ``[T, E]`` values at a point by the augmenters of each view in turn.

        None where nobody changes or watches any.
        """
        acting = [
            augmenter
            for augmenter in self.assembly.augmenters
            if tokenizer is self.assembly.online.tokenizer
            and augmenter.point in EMBEDDINGS
            and augmenter.planned.path not in encoded.off
            and not set(views).isdisjoint(augmenter.views)
        ]

        def change(point: str, spans: Spans, values: Tensor) -> Tensor:
            values = encoded.capture.keep(point, values, spans)
            changed = []
            for view, tokens, start, stop in spans:
                piece = values[start:stop]
                for augmenter in acting:
                    if augmenter.point == point and view.name in augmenter.views and stop > start:
                        fields = encoded.gradients.get(augmenter.gradient, {})
                        gradients = partial(look_up, fields, point)
                        ctx = encoded.ctx.replace(chunk=(chunk,), gradients=gradients)
                        made = self.builder.augment(augmenter, piece, tokens, view, ctx)
                        piece = made.to(piece.dtype)
                changed.append(piece)
            return torch.cat(changed) if any(a.point == point for a in acting) else values

        return change if acting or encoded.capture.points else None

    def vectors(self, encoded: Encoded, view: str, branch: str | None) -> dict[str, Embeddings]:
        """Give ``StepContext.vectors``; other branches encode a view once."""
        views = encoded.batch.views
        if view not in views:
            raise KeyError(f"no view {view}")
        if branch in (None, views[view].view.branch):
            return {level: rows.detach() for level, rows in encoded.vectors[view].items()}
        if (view, branch) not in encoded.extra:
            passes = self.assembly.composition.passes
            if not any(branch == planned.branch and view in planned.views for planned in passes):
                what = f"asks for view {view} by branch {branch}, which no record encodes"
                raise RuntimeError(f"{what}: write encodes=(({view!r}, {branch!r}),) in its record")
            made = {(view, branch): self._by(encoded, view, branch)}
            encoded.extra |= encoded.batch.gather(made)
        return encoded.extra[view, branch]

    def _by(self, encoded: Encoded, name: str, branch: str) -> dict[str, Embeddings]:
        """Encode this process's rows of a view by another branch, without gradient."""
        batch, encoder = encoded.batch, self.assembly.encoders[branch]
        view, pieces, keys = batch.views[name].view, batch.pieces[name], batch.keys[name]
        with self.precision.autocast():
            kept = self.builder.kept(view, branch, batch.local, keys[SENTENCE])
        if kept is not None:
            return {SENTENCE: kept}
        if encoder.tokenizer is not self.assembly.encoders[view.branch].tokenizer:
            ctx = encoded.narrow(batch.local)
            pieces = _cut(self.builder.prepare(view, ctx, encoder), batch.chunks, encoder)
            keys = self._keys(pieces, batch.on_device)
        with torch.no_grad():
            return self._chunks(encoded, branch, {name: pieces}, {name: keys})[name]

    # -- backward ---------------------------------------------------------------------------

    def backward(self, encoded: Encoded, objective: Objective) -> None:
        """Send the gradient back; chunk by chunk where the vectors are leaves.

        A probe takes the gradient only for the inputs, and no weight of the model gets one.
        """
        value, inputs_only = objective.value, bool(encoded.off)
        if value is None:
            return
        value = value if self.scale is None else self.scale(value)
        if len(encoded.batch.chunks) == 1:
            if value.requires_grad:
                encoded.capture.backward([value], [None], inputs_only)
            return
        if value.requires_grad:
            leaves = list(encoded.leaves.values())
            if leaves or not inputs_only:
                torch.autograd.backward([value], inputs=leaves if inputs_only else None)
        elif not encoded.terms:
            return
        for planned, pieces in self._own_passes(encoded):
            if planned.gradient:
                with torch.enable_grad(), self.precision.autocast():
                    self._backward(encoded, planned.branch, pieces, objective.weights)

    def _backward(
        self, encoded: Encoded, branch: str, pieces: Rows, weights: Mapping[str, float]
    ) -> None:
        """Encode each chunk again, and send its part of the gradients back."""
        done: dict[tuple[str, str], int] = {}
        for chunk in range(len(encoded.batch.chunks)):
            sums: Sums = {}
            roots: list[Tensor] = []
            seeds: list[Tensor | None] = []
            made = self.call(encoded, branch, pieces, chunk, sums)
            for name, (part,) in sums.items():
                if part.total.requires_grad:
                    root = part.total * (weights[name] / encoded.terms[name].count)
                    roots.append(root if self.scale is None else self.scale(root))
                    seeds.append(None)
            for name, levels in made.items():
                for level, rows in levels.items():
                    start = done.get((name, level), 0)
                    done[name, level] = stop = start + len(rows)
                    leaf = encoded.leaves.get((name, level))
                    if leaf is not None and leaf.grad is not None and rows.vectors.requires_grad:
                        roots.append(rows.vectors)
                        seeds.append(leaf.grad[start:stop])
            with torch.autocast(self.device.type, enabled=False):
                encoded.capture.backward(roots, seeds, bool(encoded.off))


def _cut(view: PreparedView, chunks: Sequence[tuple[int, int]], encoder: SentenceEncoder) -> Pieces:
    return [view.between(start, stop).with_units(encoder) for start, stop in chunks]
