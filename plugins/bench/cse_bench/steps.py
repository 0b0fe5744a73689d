"""The trainer's own loop, in several number formats in turn; nothing is written anywhere."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from cse_bench.matmul_bound import CallRecorder
from cse_cli.training.equipment import attach_callbacks
from cse_core.engine.step import Engine, StepResult
from cse_core.runtime.device import Precision
from cse_core.training.loop import TrainingLoop
from cse_core.training.rounds import TrainingRound
from cse_core.training.run import Prepared
from cse_core.training.run_folder import RunFolder


class Steps:
    """Trains a composition in several number formats in turn, the same weights in all of them.

    Each format takes the same batches, all of one size.

    Args:
        prepared: The composition, its corpus and parts.
        precisions: The number formats.
        folder: A folder for what rounds write; nothing else is written.
        planned: Steps of a format at most, so that no schedule ends before them.

    Attributes:
        device: Where the encoder is.
        size: Sentences of a step.
    """

    def __init__(
        self, prepared: Prepared, precisions: Sequence[Precision], folder: Path, planned: int
    ) -> None:
        self.device = prepared.device
        trainer = prepared.trainer(RunFolder(folder))
        attach_callbacks(trainer)
        trainer.prepare()
        current = next(trainer.rounds.each(False), TrainingRound())
        rows = trainer.rounds.begin(current)
        steps = current.options(prepared.composition.train).steps(len(rows))
        loop = TrainingLoop(
            prepared.assembly,
            current,
            rows,
            precisions[0],
            total=max(steps, planned + 1),  # the last one prefetches a batch too
            drop_last=True,
        )
        self.size = loop.batches.size
        self.loops = {precision.name: with_precision(loop, precision) for precision in precisions}
        for own in self.loops.values():
            own.engine.builder.tokenise(prepared.reporter)

    def step(self, precision: str) -> StepResult:
        """Make the next step of a number format."""
        return self.loops[precision].step()

    def close(self) -> None:
        """End what works in the background."""
        for loop in self.loops.values():
            loop.close()

    @contextmanager
    def recording(self, precision: str) -> Iterator[CallRecorder]:
        """Note the encoder calls of the steps inside."""
        recorder = CallRecorder(self.loops[precision].engine)
        with recorder.listening():
            yield recorder

    def wait(self) -> None:
        """Return when the device has done what it was given."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        elif self.device.type == "mps":
            torch.mps.synchronize()


def with_precision(loop: TrainingLoop, precision: Precision) -> TrainingLoop:
    """Return a loop in another number format over the same batches, weights and moments."""
    other = copy.copy(loop)
    other.engine = Engine(loop.assembly, loop.rows, precision, loop.current.losses, loop.options)
    return other
