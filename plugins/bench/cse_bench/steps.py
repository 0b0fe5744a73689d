"""Steps of the trainer's own engine and optimiser that are measured and not written anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch

from cse_bench.floor import CallRecorder
from cse_core.engine.optimizer import Optimizer
from cse_core.engine.step import Engine, StepResult
from cse_core.runtime.device import Precision
from cse_core.runtime.seeds import StepPosition
from cse_core.tokenization.training_rows import Batches
from cse_core.training.run import Prepared
from cse_core.training.run_folder import RunFolder


class Steps:
    """Trains a composition in several number formats in turn, the same weights in all of them.

    Args:
        prepared: The composition, its corpus and parts.
        precisions: The number formats.
        folder: A folder for what rounds write; nothing else is written.
        planned: Steps that will be asked for at most, so that no schedule ends before them.

    Attributes:
        device: Where the encoder is.
        batches: Which rows a step takes.
    """

    def __init__(
        self, prepared: Prepared, precisions: Sequence[Precision], folder: Path, planned: int
    ) -> None:
        self.assembly = prepared.assembly
        self.device = prepared.device
        trainer = prepared.trainer(RunFolder(folder))
        trainer.prepare()
        current = trainer.rounds.next(False)
        if current is None:
            raise RuntimeError("a run without a round reached the engine")
        self.round = current.number
        options = current.options(prepared.composition.train)
        rows = trainer.rows_of(current)
        trainer.rounds.begin(current.number, rows)
        self.batches = Batches(
            len(rows),
            min(options.batch_size, len(rows)),
            seed=options.seed,
            number=current.number,
            shuffle=prepared.composition.data.shuffle,
        )
        self.total = max(options.steps(len(rows)), planned)
        self.engines = {
            each.name: Engine(self.assembly, rows, each, current.losses, options)
            for each in precisions
        }
        for engine in self.engines.values():
            engine.builder.tokenise(prepared.reporter)
        self.optimizer = Optimizer(self.assembly, options, self.total)
        self.recorder = CallRecorder(b.encoder for b in self.assembly.branches.values())

    def step(self, precision: str, number: int) -> StepResult:
        """Run a step.

        Args:
            precision: Name of the number format.
            number: Of the step; equal numbers take the same sentences and draws.
        """
        place = self._place(number)
        return self.engines[precision].step(
            self.batches.at(place),
            StepPosition(number, self.total, self.batches.epoch(place), self.round),
            partial(self.optimizer.update, number),
            then=self.batches.at(self._place(number + 1)),
        )

    def _place(self, number: int) -> int:
        """Return the place of a step's batch; a short last one of an epoch is left out."""
        epoch, batch = divmod(number, self.batches.rows // self.batches.size)
        return epoch * self.batches.per_epoch + batch

    def close(self) -> None:
        """End what works in the background."""
        for engine in self.engines.values():
            engine.close()

    @contextmanager
    def recording(self, precision: str) -> Iterator[CallRecorder]:
        """Note the encoder calls of the steps inside."""
        engine, recorder = self.engines[precision], self.recorder
        fresh = engine.fresh_gradients

        def trial(*args: object) -> object:
            recorder.inputs_only = True
            try:
                return fresh(*args)  # type: ignore[arg-type]
            finally:
                recorder.inputs_only = False

        engine.fresh_gradients = trial  # type: ignore[assignment,method-assign]
        recorder.calls = []
        try:
            with recorder.listening():
                yield recorder
        finally:
            del engine.fresh_gradients

    def wait(self) -> None:
        """Return when the device has done what it was given."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        elif self.device.type == "mps":
            torch.mps.synchronize()
