"""The share of a step in which the device waits for the program, by torch's profiler."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from tests.benchmarks.inputs import write
from tests.benchmarks.steps import own
from tests.benchmarks.work import Work
from tests.gpu.runs import drawn_rows, encoder, sizes
from tests.gpu.setting import Setting

WARM, STEPS = 4, 6
WORKS = (("MiniLM", 32, 64), ("BERT-base", 32, 64), ("BERT-base", 512, 64), ("BERT-large", 32, 64))


def run(setting: Setting) -> None:
    """Profile some steps of simcse in bf16 for each work."""
    works = (("tiny", 16, 8),) if setting.small else WORKS
    with tempfile.TemporaryDirectory() as folder:
        for name, length, batch in works:
            about = {"encoder": name, "tokens": length, "batch": batch}
            with setting.trying("idle", **about):
                measure(setting, Path(folder), about)


def measure(setting: Setting, folder: Path, about: dict[str, Any]) -> None:
    """Profile one."""
    model = encoder(folder, about["encoder"], sizes(setting)[about["encoder"]])
    rows = drawn_rows(model, about["batch"] * (WARM + STEPS + 2), about["tokens"])
    activities = [ProfilerActivity.CPU]
    if not setting.small:
        activities.append(ProfilerActivity.CUDA)
    profiled = profile(activities=activities)

    def done(step: int) -> None:
        if step == WARM:
            setting.wait()
            profiled.start()
        elif step == WARM + STEPS:
            setting.wait()
            profiled.stop()

    own(
        Work(
            who="simcse", model=model, texts=write(folder / "texts.txt", rows),
            length=about["tokens"], batch=about["batch"], steps=WARM + STEPS,
            precision="fp32" if setting.small else "bf16", device=setting.device,
        ),
        done,
    )  # fmt: skip
    wanted = DeviceType.CPU if setting.small else DeviceType.CUDA
    # Spans that the program names are on the GPU's line too, and are no work of it.
    events = [
        each
        for each in profiled.events()
        if each.device_type == wanted and not each.is_user_annotation
    ]
    spans = sorted((each.time_range.start, each.time_range.end) for each in events)
    if not spans:
        setting.keep("idle", None, **about, left_out="the profiler sees no work of the device")
        return
    busy, kernels = 0.0, len(spans)
    until = spans[0][0]
    for start, end in spans:
        busy += max(end - max(start, until), 0)
        until = max(until, end)
    whole = until - spans[0][0]
    by_name: dict[str, float] = {}
    for each in events:
        took = each.time_range.end - each.time_range.start
        by_name[each.name] = by_name.get(each.name, 0.0) + took
    longest = sorted(by_name.items(), key=lambda pair: -pair[1])[:12]
    setting.keep(
        "idle", None, **about, waits=1 - busy / whole, kernels_a_step=kernels / STEPS,
        ms_a_step=whole / STEPS / 1000,
        longest=[[name[:80], round(took / STEPS / 1000, 3)] for name, took in longest],
    )  # fmt: skip
