"""Where the time of a step goes: torch's profiler, its operators sorted into a few categories."""

from __future__ import annotations

import os
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

PRODUCTS, ATTENTION = "matrix products", "attention"
IDLE, OTHER = "device waits for Python", "other"
_NAMES: dict[str, list[str]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
CATEGORIES = tuple(_NAMES)
"""In the order in which they are shown."""
_CATEGORY = {name: category for category, names in _NAMES.items() for name in names}
os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # it tells of its beginning and end on stderr
_CPU = torch._C._autograd.DeviceType.CPU
_STEP = "cse.step"


def where_the_time_goes(
    step: Callable[[], object], wait: Callable[[], None], device: torch.device
) -> dict[str, float]:
    """Return the share of each category in a step's time, together 1.

    The step is profiled, which makes it slower than one that is only timed.

    Args:
        step: Makes a step; it is warm.
        wait: Returns when the device has done what it was given.
        device: Where the encoder is.
    """
    on_gpu = device.type == "cuda"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    wait()
    with profile(activities=activities, acc_events=True) as profiler:
        began = time.perf_counter()
        with record_function(_STEP):
            step()
            wait()
        wall = time.perf_counter() - began
    return shares(list(profiler.events() or ()), wall if on_gpu else None)


def shares(events: list[Any], wall: float | None = None) -> dict[str, float]:
    """Return the share of each category in a profiled step, together 1.

    Args:
        events: The profiler's events, as ``torch.autograd.profiler_util.FunctionEvent``.
        wall: Seconds of the step where the time of a GPU is counted; None counts a CPU's.
    """
    seconds = dict.fromkeys(CATEGORIES, 0.0)
    known: dict[int, str | None] = {}
    for event in events:
        if event.is_async or event.device_type != _CPU:
            continue
        category = _category(event, known) or OTHER
        if wall is not None:
            seconds[category] += event.self_device_time_total / 1e6
        elif _inside_step(event):
            seconds[category] += event.self_cpu_time_total / 1e6
    if wall is not None:
        seconds[IDLE] = max(0.0, wall - sum(seconds.values()))
    total = sum(seconds.values())
    return {name: value / total for name, value in seconds.items()} if total else seconds


def _category(event: Any, known: dict[int, str | None]) -> str | None:
    """Return the category of the outermost operator around an event that has one."""
    chain = []
    while event is not None and id(event) not in known:
        chain.append(event)
        event = event.cpu_parent
    category = None if event is None else known[id(event)]
    for inner in reversed(chain):
        if category is None:
            name = inner.name.lower()
            category = _CATEGORY.get(inner.name)
            if category is None and ("attention" in name or "attn" in name):
                category = ATTENTION
        known[id(inner)] = category
    return category


def _inside_step(event: Any) -> bool:
    while event is not None:
        if event.name == _STEP:
            return True
        event = event.cpu_parent
    return False
