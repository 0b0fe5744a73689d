"""A training step: the only place that knows the order of things (docs/lifecycle.md).

1. Rows and views, text augmenters, tokens, slices, prompts and special tokens, token augmenters.
2. One encoder call for each branch over all its views.
3. For each level: targets by key, miners, stores, weights.
4. The weighted sum of the losses, in fp32.
5. Backward, clip, optimiser, learning rate.
6. The branches', then the parts' ``after_step``.

A profiler sees each as a mark: ``cse.views``, ``cse.input_gradients``, ``cse.encode``,
``cse.objective``, ``cse.backward``, ``cse.update``, ``cse.commit``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from torch import Tensor
from torch.profiler import record_function

from cse_core.capabilities import Need
from cse_core.parts import TokenLoss
from cse_core.types import INPUT, SENTENCE, CorpusKeys
from cse_engine.compose.settings import TrainOptions
from cse_engine.runtime.device import Precision
from cse_engine.runtime.distributed import sum_gradients
from cse_engine.runtime.seeds import StepPosition
from cse_engine.step.assembly import Assembly
from cse_engine.step.encoding import Levels
from cse_engine.step.input_gradients import Fields, GradientCapture
from cse_engine.step.objective import Objective, Objectives
from cse_engine.step.passes import Encoded, Passes
from cse_engine.step.tiles import batch_with_vectors
from cse_engine.step.training_rows import TrainingRows
from cse_engine.step.views import PreparedView, ViewBuilder

BeforeBackward = Callable[
    [Tensor, Levels, Callable[[], Levels], Callable[[Levels], Tensor | None]], None
]
"""Given the sum of the losses; the vectors of a step by view and level, before transforms; what
encodes them once more by the weights as they are then, with the same draws and dropout masks; and
what computes the sum of the losses of other vectors, None without a loss."""


@dataclass
class StepResult:
    """What a step leaves for the log: tensors on the device, not waited for.

    Attributes:
        norm: Of the gradient before it was clipped; None where nothing clips it, or no loss had
            a positive.
        rows: Of the batch, over all processes.
        tokens: Of this process's share.
        anchors: ``[A, D]`` vectors of the plain sentences.
        views: What the encoder read of this process's share.
    """

    loss: Tensor
    parts: dict[str, Tensor]
    norm: Tensor | None
    rows: int
    tokens: int
    anchors: Tensor
    views: dict[str, PreparedView]
    logged: dict[str, Tensor | float] = field(default_factory=dict)


class Engine:
    """Runs the steps of a round, with its losses by name (None is all) and its settings.

    ``scaler`` scales the loss, as in fp16; None leaves it as it is. ``before_backward`` is given
    the objective of each step that has one.
    """

    def __init__(
        self,
        assembly: Assembly,
        rows: TrainingRows,
        precision: Precision,
        losses: tuple[str, ...] | None,
        train: TrainOptions,
        scaler: torch.amp.GradScaler | None = None,
    ) -> None:
        self.scaler = scaler
        self.assembly, self.device = assembly, assembly.device
        self.builder = ViewBuilder(assembly, rows)
        self.objectives = Objectives(assembly, losses)
        input_level = INPUT in self.objectives.levels or any(
            (Need("level", INPUT),) in part.requires for part in assembly.composition.parts
        )
        token_losses = self.objectives.token_losses
        scale = None if scaler is None else scaler.scale
        self.passes = Passes(self.builder, train, precision, input_level, token_losses, scale)
        self.previous: Fields = {}
        self.before_backward: BeforeBackward | None = None
        self.off = frozenset(path for run in assembly.composition.passes for path in run.off)
        self.input_sizes = {
            "word_embeddings": assembly.online.encoder.embedding_size,
            "input_embeddings": assembly.online.encoder.hidden_size,
        }
        documents, text_ids = (k.to(self.device) for k in (rows.keys.documents, rows.keys.text_ids))
        self.keys = CorpusKeys(documents, text_ids, rows.keys.first)

    def step(
        self,
        index: Tensor,
        position: StepPosition,
        update: Callable[[], Tensor | None],
        *,
        count_negatives: bool = False,
    ) -> StepResult:
        """Run one step on the ``[B]`` rows of a batch, over all processes.

        ``update`` clips, moves the weights and the learning rate, and returns the gradient's norm.
        """
        logged: dict[str, Tensor | float] = {}
        gradients: dict[str | None, Fields] = {"previous": self.previous}
        with record_function("cse.views"):
            batch = self.passes.prepare(index, position, logged)
        probe = None
        if self.off:
            # The augmenters that ask for this step's gradient are off, and nothing is logged.
            with record_function("cse.input_gradients"):
                capture = self._capture("fresh")
                probe = self.passes.encode(
                    batch, capture=capture, gradients=gradients, off=self.off
                )
                self.passes.backward(probe, self._objective(probe))
                gradients["fresh"] = self._fields(probe)
        capture = self._capture("previous")
        with record_function("cse.encode"):
            encoded = self.passes.encode(
                batch, probe, logged=logged, capture=capture, gradients=gradients
            )
        probe = None  # so that its graph ends
        objective = self._objective(encoded, count_negatives=count_negatives)
        if self.before_backward is not None and objective.value is not None:
            again = partial(self.passes.encode, batch, gradients=gradients)
            given = encoded.vectors, lambda: again().vectors, partial(self._value, encoded)
            self.before_backward(objective.value, *given)
        with record_function("cse.backward"):
            if objective.value is not None:
                self.passes.backward(encoded, objective)
                # Generators: in one process nothing is walked.
                sum_gradients(self._weights(whole=False), self._weights(whole=True))
            self.previous = self._fields(encoded)
        with record_function("cse.update"):
            norm = update() if objective.value is not None else None
        with record_function("cse.commit"):
            self._commit(objective, encoded)
        value, calls = objective.loss, self.assembly.calls
        noted = None if self.scaler is not None else norm  # one that overflows is left out
        for what, number in (("the sum of the losses", value), ("the gradient", noted)):
            if number is not None:
                calls.note("train", what, number)
        calls.end_step(position.step)
        return StepResult(
            loss=torch.zeros((), device=self.device) if value is None else value.detach(),
            parts=objective.parts,
            norm=norm,
            rows=len(index),
            tokens=sum(len(prepared.tokens.ids) for prepared in batch.views.values()),
            anchors=objective.batches[SENTENCE].anchors.detach(),
            views=batch.views,
            logged=logged,
        )

    def _objective(self, encoded: Encoded, *, count_negatives: bool = False) -> Objective:
        with record_function("cse.objective"), torch.autocast(self.device.type, enabled=False):
            return self.objectives(
                encoded.levels,
                encoded.batch.roles,
                encoded.ctx.rows.to(self.device, non_blocking=True),
                self.keys,
                encoded.ctx,
                encoded.terms,
                encoded.batch.lists,
                count_negatives=count_negatives,
            )

    def _value(self, encoded: Encoded, vectors: Levels) -> Tensor | None:
        changed = replace(encoded, vectors=vectors)
        changed.levels = self.passes.transformed(changed)
        return self._objective(changed).value

    def _commit(self, objective: Objective, encoded: Encoded) -> None:
        ctx, parts = encoded.ctx, self.assembly.parts
        # Nothing that a part stores is to keep a graph.
        batches = {
            level: batch_with_vectors(batch, Tensor.detach)
            for level, batch in objective.batches.items()
        }
        # Branches come first.
        for path in sorted(parts, key=lambda path: not path.startswith("branch.")):
            level = self.objectives.level_of.get(path, SENTENCE)
            self.assembly.calls(parts[path], "after_step", batches[level], ctx)

    def _weights(self, *, whole: bool) -> Iterator[torch.nn.Parameter]:
        """Yield the weights whose gradient each of several processes has whole, or the others."""
        encoder = self.assembly.online.encoder
        for path, module in [("encoder", encoder), *self.assembly.modules()]:
            # What sees the gathered vectors has its whole gradient in every process.
            sees = path.startswith(("loss.", "negatives.", "positives.", "transform."))
            if whole is (sees and not isinstance(module, TokenLoss)):
                yield from module.parameters()

    def _capture(self, mode: str) -> GradientCapture:
        return GradientCapture(a.point for a in self.assembly.augmenters if a.gradient == mode)

    def _fields(self, encoded: Encoded) -> Fields:
        fields = encoded.capture.fields(encoded.batch.views, self.input_sizes, self.device)
        if self.scaler is None:
            return fields
        scale = self.scaler.scale(torch.ones((), device=self.device))
        return {
            place: replace(field, values=torch.nan_to_num(field.values.float() / scale))
            for place, field in fields.items()
        }
