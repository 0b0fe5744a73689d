"""Measures a composition's training: precisions in turn, in rounds, by the trainer's own loop."""

from __future__ import annotations

import copy
import ctypes
import gc
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import torch

from cse_bench.report import BenchReport, MeasuredPrecision, Spread
from cse_bench.where import where_the_time_goes
from cse_cli.machine.processor import processor
from cse_cli.training.collapse import attach_callbacks
from cse_core.data import Corpus
from cse_core.engine.step import Engine
from cse_core.errors import CseError
from cse_core.recipes.composition import Composition
from cse_core.registry.registry import Registry
from cse_core.reporter import Reporter
from cse_core.runtime import distributed
from cse_core.runtime.device import Precision, resolve_device, resolve_precision
from cse_core.training.loop import TrainingLoop
from cse_core.training.rounds import TrainingRound
from cse_core.training.run import Prepared
from cse_core.training.run_folder import RunFolder

WARM_STEPS = 2
"""Steps of each precision before anything is timed."""


def check_precisions(names: Sequence[str], device: str) -> None:
    """Refuse precisions that cannot be measured on a device, by ``train.precision``.

    Raises:
        CseError: If the device or precision is unknown.
    """
    for name in names:
        if name == "auto":
            what, hint = "is not a precision to measure", "name some, such as fp32,bf16"
            raise CseError(what, where="train.precision", value=name, hint=hint)
        resolve_precision(name, resolve_device(device))


def measure(
    composition: Composition,
    registry: Registry,
    *,
    precisions: Sequence[str],
    steps: int,
    rounds: int,
    reporter: Reporter,
    corpus: Corpus | None = None,
) -> BenchReport:
    """Measure training steps; nothing is written.

    Args:
        composition: The checked recipe.
        registry: The installed parts.
        precisions: Their names.
        steps: Timed steps of a round, after one that is not.
        rounds: How often the precisions take turns.
        reporter: Receives the progress.
        corpus: The rows that ``data.*`` names, where they were read already.

    Raises:
        CseError: If the model or the data is wrong, or there are several processes.
    """
    train = composition.train.model_copy(update={"precision": precisions[0]})
    prepared = Prepared(replace(composition, train=train), registry, reporter, corpus)
    if distributed.rank_and_size()[1] > 1:
        hint = "start it without torchrun"
        raise CseError("measures a single process", where="cse bench", hint=hint)
    found = [resolve_precision(name, prepared.device) for name in precisions]
    planned = WARM_STEPS + rounds * (1 + steps) + 1
    gc.collect()  # what loading left behind is collected in no timed step
    with tempfile.TemporaryDirectory(prefix="cse-bench-") as folder:
        work = Steps(prepared, found, Path(folder), planned)
        return _measure(prepared, composition, work, steps, rounds, reporter)


class Steps:
    """Trains a composition in several precisions in turn, the same weights in all of them.

    Each precision takes the same batches, all of one size.

    Args:
        prepared: The composition, its corpus and parts.
        precisions: The precisions.
        folder: A folder for what rounds write; nothing else is written.
        planned: Steps of a precision at most, so that no schedule ends before them.

    Attributes:
        device: Where the encoder is.
        size: Sentences of a step.
        loops: The loop of each precision, by its name.
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
        total = max(steps, planned)
        loop = TrainingLoop(prepared.assembly, current, rows, precisions[0], total=total)
        self.size = loop.batches.size
        loop.batches.rows -= len(rows) % self.size  # no smaller batch at the end of an epoch
        self.loops = {precision.name: with_precision(loop, precision) for precision in precisions}
        for own in self.loops.values():
            own.engine.builder.tokenise(prepared.reporter)

    def wait(self) -> None:
        """Return when the device has done what it was given."""
        if self.device.type != "cpu":
            torch.accelerator.synchronize(self.device)


def with_precision(loop: TrainingLoop, precision: Precision) -> TrainingLoop:
    """Return a loop in another precision over the same batches, weights and moments."""
    other = copy.copy(loop)
    other.engine = Engine(loop.assembly, loop.rows, precision, loop.current.losses, loop.options)
    return other


def _measure(
    prepared: Prepared,
    composition: Composition,
    work: Steps,
    steps: int,
    rounds: int,
    reporter: Reporter,
) -> BenchReport:
    names = list(work.loops)
    total, done = (rounds + 2) * len(names), 0

    def forward() -> None:
        nonlocal done
        done += 1
        reporter.progress(done, total, "measuring")

    reporter.message(
        f"{' and '.join(names)} on {prepared.device}, rounds: {rounds}, steps of a round: {steps}"
    )
    reporter.progress(0, total, "measuring")
    peaks: dict[str, int | None] = {}
    timed: dict[str, list[tuple[float, int]]] = {name: [] for name in names}
    measured = []
    for name in names:
        with _peak_memory(work.device) as peak:
            for _ in range(WARM_STEPS):
                work.loops[name].step()
            work.wait()
        peaks[name] = peak.get("bytes")
        forward()
    for turn in range(rounds):
        # Every second round goes the other way, so that a drift of the machine is shared.
        for name in names if turn % 2 == 0 else reversed(names):
            timed[name].append(_timed(work, name, steps))
            forward()
    for name in names:
        measured.append(
            MeasuredPrecision(
                name=name,
                sentences_per_second=Spread.of([steps * work.size / s for s, _ in timed[name]]),
                tokens_per_second=Spread.of([tokens / s for s, tokens in timed[name]]),
                seconds_per_step=Spread.of([s / steps for s, _ in timed[name]]),
                peak_memory=peaks[name],
                where=where_the_time_goes(work.loops[name].step, work.wait, work.device),
            )
        )
        forward()
    reporter.end()
    gain = None
    if {"fp32", "bf16"} <= timed.keys():
        pairs = zip(timed["fp32"], timed["bf16"], strict=True)
        gain = Spread.of([one / other for (one, _), (other, _) in pairs])
    on_gpu = prepared.device.type == "cuda"
    return BenchReport(
        composition=composition,
        processor=processor(),
        device=str(prepared.device),
        torch=torch.__version__,
        gpu=torch.cuda.get_device_name(prepared.device) if on_gpu else None,
        threads=torch.get_num_threads(),
        rows=len(prepared.corpus),
        batch_size=work.size,
        tokens_per_step=sum(tokens for own in timed.values() for _, tokens in own)
        / (steps * rounds * len(names)),
        rounds=rounds,
        steps=steps,
        precisions=tuple(measured),
        gain=gain,
        auto=resolve_precision("auto", prepared.device).name,
    )


def _timed(work: Steps, name: str, steps: int) -> tuple[float, int]:
    """Return the seconds and the real tokens of the timed steps of a round."""
    work.loops[name].step()
    work.wait()
    tokens = 0
    began = time.perf_counter()
    for _ in range(steps):
        tokens += work.loops[name].step().tokens
    work.wait()
    return time.perf_counter() - began, tokens


@contextmanager
def _peak_memory(device: torch.device) -> Iterator[dict[str, int]]:
    """Give a table that has the most ``bytes`` in use when the context is left, where known."""
    peak: dict[str, int] = {}
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        yield peak
        peak["bytes"] = int(torch.cuda.max_memory_allocated(device))
        return
    gc.collect()
    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)  # freed memory goes back to the system
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # VmHWM starts again
    except OSError:
        yield peak
        return
    yield peak
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM:"):
            peak["bytes"] = int(line.split()[1]) * 1024
