"""Where the time of a step goes: torch's profiler, its operators sorted into a few categories."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

PRODUCTS, ATTENTION, DROPOUT = "matrix products", "attention", "dropout"
NORMS, ACTIVATIONS, COPIES = "normalisation", "activations and sums", "copies and casts"
EMBEDDING, OPTIMISER = "embedding", "optimiser"
OBJECTIVE, DATA = "losses, stores and branches", "data preparation"
IDLE, OTHER = "device waits for Python", "other"
CATEGORIES = (
    PRODUCTS, ATTENTION, DROPOUT, NORMS, ACTIVATIONS, COPIES, EMBEDDING, OPTIMISER, OBJECTIVE, DATA,
    IDLE, OTHER,
)  # fmt: skip
"""In the order in which they are shown."""
os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # it tells of its beginning and end on stderr
_CPU = torch._C._autograd.DeviceType.CPU
_STEP = "cse.step"
_NAMES: dict[str, tuple[str, ...]] = {
    DROPOUT: ("_Masked", "_MaskedBackward", "aten::dropout", "aten::native_dropout",
              "aten::native_dropout_backward", "aten::bernoulli_", "aten::_fused_dropout"),
    ATTENTION: ("aten::bmm", "aten::baddbmm", "aten::softmax", "aten::_softmax",
                "aten::_softmax_backward_data", "_Pad", "_PadBackward", "_Unpad",
                "_UnpadBackward"),
    PRODUCTS: ("aten::linear", "aten::addmm", "aten::mm", "aten::mkldnn_linear", "aten::mv",
               "aten::addmv"),
    NORMS: ("aten::layer_norm", "aten::native_layer_norm", "aten::native_layer_norm_backward",
            "aten::rms_norm", "aten::_fused_rms_norm", "aten::batch_norm"),
    EMBEDDING: ("aten::embedding", "aten::embedding_backward", "aten::embedding_dense_backward",
                "_LookUp", "_LookUpBackward"),
    ACTIVATIONS: ("aten::gelu", "aten::gelu_backward", "aten::tanh", "aten::tanh_backward",
                  "aten::relu", "aten::threshold_backward", "aten::silu", "aten::silu_backward",
                  "aten::add", "aten::add_", "aten::sum", "aten::mul", "aten::mul_", "aten::div",
                  "aten::sub"),
    COPIES: ("aten::to", "aten::_to_copy", "aten::copy_", "aten::clone", "aten::contiguous",
             "aten::cat", "aten::stack", "aten::index_select", "aten::index", "aten::gather",
             "aten::zeros", "aten::zero_", "aten::fill_", "aten::repeat_interleave",
             "aten::reshape", "ToCopyBackward0"),
}  # fmt: skip
_CATEGORY = {name: category for category, names in _NAMES.items() for name in names}
_MARKED = {
    "cse.views": DATA,
    "cse.objective": OBJECTIVE,
    "cse.commit": OBJECTIVE,
    "cse.update": OPTIMISER,
    "cse.dropout": DROPOUT,
}
"""What the engine marks for a profiler, where operators alone do not tell."""


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
            category = _MARKED.get(inner.name) or _CATEGORY.get(inner.name)
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
