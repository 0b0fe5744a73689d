"""Steps of every installed part on a GPU and on the CPU, and what waits for the GPU."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from cse_testkit import installed_registry
from cse_testkit.runs import Rig
from torch import Tensor
from torch.overrides import TorchFunctionMode

from cse_core.registry.registry import Registry
from tests.device.cases import CASES, JOINED, Case, composed, cpu_generators, draws_dropout, named
from tests.gpu.setting import Setting, exact

FAR = 1e-4
"""How far a loss may be from the CPU's, relative."""
FEW = ("loss.infonce train.chunk_size=2", "aug.gaussian")
"""What a trial does."""


class DrawnHere(TorchFunctionMode):
    """Draws with a generator of the CPU on the CPU, and copies what is drawn to the device."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        drawn = kwargs.get("generator")
        if drawn is None or drawn.device.type != "cpu":
            return func(*args, **kwargs)
        if not args or not isinstance(args[0], Tensor):
            device = torch.device(kwargs.pop("device", None) or "cpu")
            return func(*args, **kwargs).to(device)
        given, in_place = args[0], func.__name__.endswith("_")
        if given.device.type == "cpu":
            return func(*args, **kwargs)
        first = torch.empty(given.shape, dtype=given.dtype) if in_place else given.cpu()
        here = [each.cpu() if isinstance(each, Tensor) else each for each in args[1:]]
        made = func(first, *here, **kwargs)
        return given.copy_(made) if in_place else made.to(given.device)


@contextmanager
def watched(setting: Setting, waits: list[str]) -> Iterator[None]:
    """Note the lines that wait for the device; torch warns of its own watch too, once."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        if not setting.small:
            torch.cuda.set_sync_debug_mode("warn")
        try:
            yield
        finally:
            if not setting.small:
                torch.cuda.set_sync_debug_mode("default")
            waits += [
                f"{w.filename}:{w.lineno}"
                for w in seen
                if "called a synchronizing" in str(w.message)
            ]


def run(setting: Setting) -> None:
    """Losses of every installed part are those of the CPU, and no step waits for the device.

    Both run in fp32, without TF32 and dropout; what a part draws is drawn on the CPU for both.
    """
    exact()
    registry = installed_registry()
    for case in CASES:
        if setting.small and named(case) not in FEW:
            continue
        with setting.trying("losses", part=named(case)):
            losses(setting, case, registry)
        with setting.trying("waits", part=named(case)):
            steps(setting, case, registry)


def losses(setting: Setting, case: Case, registry: Registry) -> None:
    found, drawn = [], False
    for device in ("cpu", setting.device):
        with cpu_generators(), DrawnHere():
            rig = Rig(composed([case], registry, f"train.device={device}"))
            found.append([float(each.loss) for each in rig.step(3)])
        drawn = drawn or draws_dropout(rig)
    far = max(abs(one - two) / max(abs(one), 1e-3) for one, two in zip(*found, strict=True))
    # Dropout of a head draws other numbers on every device: its first losses are near at most.
    ok = all(map(math.isfinite, found[1])) if drawn else far <= FAR
    facts = {"cpu": found[0], "there": found[1], "far": far, "dropout": drawn}
    setting.keep("losses", ok, part=named(case), **facts)


def steps(setting: Setting, case: Case, registry: Registry) -> None:
    """Take two steps under torch's watch, after two that it does not see."""
    session = Rig(composed([case], registry, f"train.device={setting.device}")).session.prepare()
    session.step()
    session.step()
    waits: list[str] = []
    with watched(setting, waits):
        for _ in range(2):
            session.step()
    setting.keep("waits", not waits or named(case) in JOINED, part=named(case), waits=waits)
