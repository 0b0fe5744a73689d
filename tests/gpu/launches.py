"""What a step gives the device, by the marks of the step."""

import tempfile
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile

import cse
from tests.benchmarks.inputs import make_model, read
from tests.gpu.runs import SIZES, drawn
from tests.gpu.setting import Setting

STEPS = 5
MARKS = ("views", "encode", "objective", "backward", "update", "commit")


def launches(setting: Setting) -> None:
    """Kernels of a step of SimCSE and the host's time for them, by the marks of the step.

    bf16, random encoders, rows of drawn words. `rest` lies between marks. `gaps` is the time in
    which the device waits for the host; on a processor operators are counted in place of kernels.
    `layers` are as they are, or compiled (`train.compile`); the first step compiles, untimed.
    """
    cells = [(64, 32, "MiniLM"), (64, 32, "BERT-base"), (512, 32, "MiniLM")]
    kinds = [(*cell, False) for cell in cells] + [(*cell, True) for cell in cells[:2]]
    with tempfile.TemporaryDirectory() as folder:
        for batch, length, name, compiled in ((8, 16, "tiny", False),) if setting.small else kinds:
            layers = "compiled" if compiled else "as they are"
            about = {"encoder": name, "tokens": length, "batch": batch, "layers": layers}
            with setting.trying("step", **about):
                model = Path(folder) / name
                if not model.exists():
                    make_model(model, read(None, 2_000), SIZES[name])
                work = drawn(setting, Path(folder), str(model), length, batch, None, 2 * STEPS)
                options = {
                    "train.batch_size": batch, "model.max_length": length, "data.shuffle": False,
                    "train.precision": work.precision, "train.device": setting.device,
                    "train.threads": 1 if setting.small else None, "train.compile": compiled,
                }  # fmt: skip
                with cse.Session(
                    "simcse", model=str(model), data=work.texts, dev="none", options=options
                ) as session:
                    seconds, events = _profiled(session.prepare(), setting)
                _keep(setting, about, 1000 * seconds, events)


def _profiled(session: cse.Session, setting: Setting) -> tuple[float, Sequence[FunctionEvent]]:
    """Return seconds of a step without a profiler, and what a profiler sees of ``STEPS`` steps."""
    wait = (lambda: None) if setting.small else torch.cuda.synchronize
    for _ in range(2):
        session.step()
    wait()
    began = time.perf_counter()
    for _ in range(STEPS):
        session.step()
    wait()
    seconds = (time.perf_counter() - began) / STEPS
    also = [] if setting.small else [ProfilerActivity.CUDA]
    with profile(activities=[ProfilerActivity.CPU, *also]) as watched:
        for _ in range(STEPS):
            session.step()
        wait()
    events: Any = watched.events()
    return seconds, events


def _keep(
    setting: Setting, about: dict[str, Any], wall: float, events: Sequence[FunctionEvent]
) -> None:
    """Write down what each mark has of the kernels, in a step and milliseconds."""
    on_host = [event for event in events if event.device_type == torch.autograd.DeviceType.CPU]
    spans = sorted(
        (event.time_range.start, event.time_range.end, name)
        for event in on_host
        if (name := event.name.removeprefix("cse.")) in MARKS and name != event.name
    )
    starts = [start for start, *_ in spans]
    counts, host, device = Counter[str](), Counter[str](), Counter[str]()
    for start, end, name in spans:
        host[name] += end - start
    for event in on_host:
        place = bisect_right(starts, event.time_range.start) - 1
        inside = place >= 0 and event.time_range.start < spans[place][1]
        name = spans[place][2] if inside else "rest"
        if setting.small:
            counts[name] += event.name.startswith("aten::") and not event.cpu_children
        counts[name] += len(event.kernels)
        device[name] += sum(kernel.duration for kernel in event.kernels)
    for name in dict.fromkeys((*MARKS, "rest")):
        if counts[name] or host[name]:
            setting.keep("marks", None, **about, mark=name, kernels=counts[name] / STEPS,
                         host_ms=host[name] / STEPS / 1000,
                         device_ms=device[name] / STEPS / 1000)  # fmt: skip
    busy = device.total() / STEPS / 1000
    gaps = None if setting.small else wall - busy
    setting.keep("step", None, **about, kernels=counts.total() / STEPS, wall_ms=wall,
                 device_ms=busy, gaps_ms=gaps)  # fmt: skip
