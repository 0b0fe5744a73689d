"""Measures a composition's training: number formats in turn, in rounds, beside their floors."""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from cse_bench.matmul_bound import EncoderCall, MatmulBound, products
from cse_bench.memory import Peak, peak_memory
from cse_bench.report import BenchReport, MeasuredPrecision, Spread, TimedRound
from cse_bench.steps import Steps
from cse_bench.where import where_the_time_goes
from cse_cli.machine.processor import processor
from cse_core.data import Corpus
from cse_core.errors import CseError
from cse_core.recipes.composition import Composition
from cse_core.registry.registry import Registry
from cse_core.runtime import distributed
from cse_core.runtime.device import Precision, resolve_device, resolve_precision
from cse_core.runtime.reporter import Reporter
from cse_core.training.run import Prepared

WARM = 2
"""Steps of each number format before anything is timed."""
WHAT = "measuring"
"""What the progress is called."""


@dataclass(frozen=True)
class _Bounds:
    """A step's bound, the same with its own last layer if that differs, and its real tokens."""

    whole: MatmulBound | None
    own: MatmulBound | None
    tokens: int


def check_precisions(names: Sequence[str], device: str) -> None:
    """Refuse number formats that cannot be measured.

    Args:
        names: Those that were asked for.
        device: ``train.device``.

    Raises:
        CseError: If the device or format is unknown, or nobody would train in it there.
    """
    for name in names:
        if name == "auto":
            raise CseError(
                "is not a number format to measure",
                where="train.precision",
                value=name,
                hint="name number formats to measure, such as fp32,bf16",
            )
        if resolve_precision(name, where := resolve_device(device)).name == "fp16":
            if where.type == "cpu":
                raise CseError(
                    "fp16 has no fast kernels on a CPU: matrix products are about 100 times slower"
                    " than in fp32",
                    where="train.precision",
                    value=name,
                    hint="use bf16 or fp32",
                )


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
        precisions: Names of number formats.
        steps: Timed steps of a round, after one that is not.
        rounds: How often the number formats take turns.
        reporter: Who hears of the progress.
        corpus: The rows that ``data.*`` names, where they were read already.

    Raises:
        CseError: If the model or the data is wrong, or there are several processes.
    """
    train = composition.train.model_copy(update={"precision": precisions[0]})
    prepared = Prepared(replace(composition, train=train), registry, reporter, corpus)
    if distributed.rank_and_size()[1] > 1:
        raise CseError(
            "measures a single process", where="cse bench", hint="start it without torchrun"
        )
    formats = [resolve_precision(name, prepared.device) for name in precisions]
    planned = WARM + rounds * (1 + steps) + 1
    gc.collect()  # what loading left behind is collected in no timed step
    with tempfile.TemporaryDirectory(prefix="cse-bench-") as folder:
        with closing(Steps(prepared, formats, Path(folder), planned)) as work:
            return _measure(prepared, composition, work, formats, steps, rounds, reporter)


def _measure(
    prepared: Prepared,
    composition: Composition,
    work: Steps,
    formats: Sequence[Precision],
    steps: int,
    rounds: int,
    reporter: Reporter,
) -> BenchReport:
    total, done = (rounds + 2) * len(formats), 0

    def forward() -> None:
        nonlocal done
        done += 1
        reporter.progress(done, total, WHAT)

    names = [precision.name for precision in formats]
    reporter.message(
        f"{' and '.join(names)} on {prepared.device}, rounds: {rounds}, steps of a round: {steps}"
    )
    reporter.progress(0, total, WHAT)
    peaks: dict[str, Peak] = {}
    calls: list[EncoderCall] = []
    tokens = 0
    for name in names:
        with peak_memory(work.device) as peaks[name], work.recording(name) as recorder:
            for _ in range(WARM):
                recorder.calls = []
                tokens = work.step(name).tokens
            work.wait()
        calls = recorder.calls
        forward()
    # Made when all peaks are known, so that their memory is not counted.
    bounds = {form.name: _bounds(calls, tokens, form, work.device) for form in formats}
    timed: dict[str, list[TimedRound]] = {name: [] for name in names}
    for turn in range(rounds):
        # Every second round goes the other way, so that a drift of the machine is shared.
        for name in names if turn % 2 == 0 else reversed(names):
            timed[name].append(_round(work, name, steps, bounds[name]))
            forward()
    measured = []
    for name in names:
        where = where_the_time_goes(work, name)
        measured.append(MeasuredPrecision.of(name, timed[name], peaks[name], where))
        forward()
    reporter.end()
    gain = None
    if {"fp32", "bf16"} <= timed.keys():
        pairs = zip(timed["fp32"], timed["bf16"], strict=True)
        gain = Spread.of([one.seconds / other.seconds for one, other in pairs])
    counted = [one for rounds_of in timed.values() for one in rounds_of]
    padded = sum(call.rows * call.longest for call in calls)
    packed = prepared.assembly.online.encoder.packed
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
        packed=packed,
        tokens=sum(one.tokens for one in counted) / sum(one.steps for one in counted),
        padding_avoided=1 - sum(call.tokens for call in calls) / padded if packed else 0.0,
        rounds=rounds,
        steps=steps,
        precisions=tuple(measured),
        gain=gain,
        auto=resolve_precision("auto", prepared.device).name,
    )


def _bounds(
    calls: Sequence[EncoderCall], tokens: int, precision: Precision, device: torch.device
) -> _Bounds:
    whole, own = products(calls), products(calls, whole=False)
    dtype = precision.dtype or torch.float32
    return _Bounds(
        MatmulBound(whole, dtype, device) if whole else None,
        MatmulBound(own, dtype, device) if own != whole else None,
        tokens,
    )


def _round(work: Steps, name: str, steps: int, bounds: _Bounds) -> TimedRound:
    work.step(name)
    work.wait()
    tokens = 0
    began = time.perf_counter()
    for _ in range(steps):
        tokens += work.step(name).tokens
    work.wait()
    seconds = time.perf_counter() - began

    def a_token(bound: MatmulBound | None) -> float | None:
        times = (steps + 1) // 2
        return None if bound is None else bound.seconds(times, work.wait) / bounds.tokens

    sentences = steps * work.size
    return TimedRound(seconds, steps, sentences, tokens, a_token(bounds.whole), a_token(bounds.own))
