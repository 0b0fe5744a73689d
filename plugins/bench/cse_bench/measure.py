"""Measures a composition's training: precisions in turn, in rounds, by the trainer's own loop."""

from __future__ import annotations

import ctypes
import gc
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path

import torch

from cse import Composition, Session, resolve_precision
from cse_bench.report import BenchReport, MeasuredPrecision, Spread
from cse_bench.where import where_the_time_goes
from cse_cli.api import Installed, pages_advice, processor
from cse_core.errors import CseError
from cse_core.reporter import Reporter

WARM_STEPS = 2
"""Steps of each precision before anything is timed."""


def measure(
    composition: Composition,
    plugins: Installed,
    *,
    precisions: Sequence[str],
    steps: int,
    rounds: int,
    reporter: Reporter,
) -> BenchReport:
    """Measure training steps; nothing is written.

    Args:
        composition: The checked recipe.
        plugins: The installed plugins.
        precisions: Their names.
        steps: Timed steps of a round, after one that is not.
        rounds: How often the precisions take turns.
        reporter: Receives the progress.

    Raises:
        CseError: If the model or the data is wrong, or there are several processes.
    """
    if int(os.environ.get("WORLD_SIZE") or 1) > 1:
        hint = "start it without torchrun"
        raise CseError("measures a single process", where="cse bench", hint=hint)
    # No schedule ends before the last step.
    changes = {"precision": precisions[0], "max_steps": WARM_STEPS + rounds * (1 + steps) + 1}
    train = composition.train.model_copy(update=changes)
    with Session(replace(composition, train=train), plugins=plugins, reporter=reporter) as session:
        gc.collect()  # what loading left behind is collected in no timed step
        work = {name: Steps(session.with_precision(name)) for name in precisions}
        report = _measure(session, work, steps, rounds, reporter)
    return replace(report, asked=composition.train.precision)


class Steps:
    """The steps of a session, in batches of one size: that at the end of an epoch is left out.

    Attributes:
        size: Sentences of a step.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.size = len(session.batch(0))
        batches = (session.batch(number) for number in count())
        self._full = (batch for batch in batches if len(batch) == self.size)

    def step(self) -> int:
        """Make the next step; return its real tokens."""
        return self.session.step(next(self._full)).tokens

    def wait(self) -> None:
        """Wait until the device has finished its work."""
        if self.session.device.type != "cpu":
            torch.accelerator.synchronize(self.session.device)


def _measure(
    session: Session, work: Mapping[str, Steps], steps: int, rounds: int, reporter: Reporter
) -> BenchReport:
    names, device, size = list(work), session.device, len(session.batch(0))
    total, done = (rounds + 2) * len(names), 0

    def forward() -> None:
        nonlocal done
        done += 1
        reporter.progress(done, total, "measuring")

    reporter.message(
        f"{' and '.join(names)} on {device}, rounds: {rounds}, steps of a round: {steps}"
    )
    reporter.progress(0, total, "measuring")
    peaks: dict[str, int | None] = {}
    timed: dict[str, list[tuple[float, int]]] = {name: [] for name in names}
    measured = []
    for name in names:
        with _peak_memory(device) as peak:
            for _ in range(WARM_STEPS):
                work[name].step()
            work[name].wait()
        peaks[name] = peak.get("bytes")
        forward()
    began = os.times()
    for turn in range(rounds):
        # Every second round goes the other way, so that a drift of the machine is shared.
        for name in names if turn % 2 == 0 else reversed(names):
            timed[name].append(_timed(work[name], steps))
            forward()
    memory_advice = pages_advice(began) if device.type == "cpu" else None
    for name in names:
        measured.append(
            MeasuredPrecision(
                name=name,
                sentences_per_second=Spread.of([steps * size / s for s, _ in timed[name]]),
                tokens_per_second=Spread.of([tokens / s for s, tokens in timed[name]]),
                seconds_per_step=Spread.of([s / steps for s, _ in timed[name]]),
                peak_memory=peaks[name],
                where=where_the_time_goes(work[name].step, work[name].wait, device),
            )
        )
        forward()
    reporter.end()
    gain = None
    if {"fp32", "bf16"} <= timed.keys():
        pairs = zip(timed["fp32"], timed["bf16"], strict=True)
        gain = Spread.of([one / other for (one, _), (other, _) in pairs])
    on_gpu = device.type == "cuda"
    return BenchReport(
        composition=session.composition,
        processor=processor(),
        device=str(device),
        torch=torch.__version__,
        gpu=torch.cuda.get_device_name(device) if on_gpu else None,
        threads=torch.get_num_threads(),
        rows=len(session.corpus),
        batch_size=size,
        tokens_per_step=sum(tokens for counts in timed.values() for _, tokens in counts)
        / (steps * rounds * len(names)),
        rounds=rounds,
        steps=steps,
        precisions=tuple(measured),
        gain=gain,
        auto=resolve_precision("auto", device).name,
        memory_advice=memory_advice,
    )


def _timed(work: Steps, steps: int) -> tuple[float, int]:
    """Return the seconds and the real tokens of the timed steps of a round."""
    work.step()
    work.wait()
    tokens = 0
    began = time.perf_counter()
    for _ in range(steps):
        tokens += work.step()
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
