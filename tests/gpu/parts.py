"""Steps of every installed part: losses are those of the CPU, and no step waits for the device.

Both run in fp32, without TF32 and dropout. What a part draws is drawn on the CPU for both: the
generators of a GPU draw other numbers. Then the same steps run under torch's own watch, which
raises where the program waits for the device.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from cse_testkit import installed_registry
from cse_testkit.runs import Rig
from torch import Tensor
from torch.overrides import TorchFunctionMode

from cse_core.runtime import seeds
from tests.device.cases import CASES, JOINED, Case, composed, named
from tests.gpu.runs import simcse
from tests.gpu.setting import Setting, exact

FAR = 1e-4
"""How far a loss may be from the CPU's, relative."""
FEW = ("loss.infonce train.chunk_size=2", "aug.gaussian")
"""What a trial does."""


class _Torch:
    """torch, with generators of the CPU alone."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def Generator(self, device: Any = None) -> torch.Generator:  # noqa: N802
        return torch.Generator()


class DrawnHere(TorchFunctionMode):
    """Draws with a generator of the CPU on the CPU, and copies what is drawn to the device."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        drawn = kwargs.get("generator")
        if drawn is None or drawn.device.type != "cpu":
            return func(*args, **kwargs)
        if args and isinstance(args[0], Tensor):
            given = args[0]
            if given.device.type == "cpu":
                return func(*args, **kwargs)
            if func.__name__.endswith("_"):
                first = torch.empty(given.shape, dtype=given.dtype)
                return given.copy_(func(first, *map(_here, args[1:]), **kwargs))
            return func(*map(_here, args), **kwargs).to(given.device)
        device = torch.device(kwargs.pop("device", None) or "cpu")
        return func(*args, **kwargs).to(device)


def _here(value: Any) -> Any:
    return value.cpu() if isinstance(value, Tensor) else value


@contextmanager
def drawn_here() -> Iterator[None]:
    """Draw everything on the CPU."""
    before = seeds.torch
    seeds.torch = _Torch()  # type: ignore[attr-defined, assignment]
    try:
        with DrawnHere():
            yield
    finally:
        seeds.torch = before


@contextmanager
def watched(device: str) -> Iterator[None]:
    """Raise where something waits for the device."""
    if device == "cpu":
        yield
        return
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def run(setting: Setting) -> None:
    """Run every case."""
    exact()
    registry = installed_registry()
    for precision in ("fp32",) if setting.small else ("fp32", "bf16"):
        with setting.trying("waits", part=f"a run in {precision}"):
            whole(setting, precision)
    for case in CASES:
        if setting.small and named(case) not in FEW:
            continue
        with setting.trying("losses", part=named(case)):
            losses(setting, case, registry)
        with setting.trying("waits", part=named(case)):
            waits(setting, case, registry)


def losses(setting: Setting, case: Case, registry: Any) -> None:
    """Compare three losses with the CPU's."""
    began = time.perf_counter()
    composition, corpus = composed(case, registry)
    found = []
    drawn = False
    for device in ("cpu", setting.device):
        with drawn_here():
            rig = Rig(composition, corpus, registry=registry, device=device)
            found.append([float(each.loss) for each in rig.step(3)])
        inside = (each for _, module in rig.assembly.modules() for each in module.modules())
        drawn = drawn or any(getattr(each, "p", 0.0) for each in inside)
    here, there = found
    far = max(
        abs(one - other) / max(abs(one), 1e-3) for one, other in zip(here, there, strict=True)
    )
    # Dropout of a head draws other numbers on every device: its first losses are near at most.
    ok = all(map(math.isfinite, there)) if drawn else far <= FAR
    facts = {"cpu": here, "there": there, "far": far, "dropout": drawn}
    took = time.perf_counter() - began
    setting.keep("losses", ok, part=named(case), **facts, seconds=round(took, 2))


def waits(setting: Setting, case: Case, registry: Any) -> None:
    """Take two steps under torch's watch, after two that it does not see."""
    composition, corpus = composed(case, registry)
    rig = Rig(composition, corpus, registry=registry, device=setting.device)
    rig.loop.before_update = None  # the kit's look at every gradient waits for the device
    rig.step(2)
    waited = ""
    try:
        with watched(setting.device):
            for _ in range(2):
                rig.loop.step()
    except RuntimeError as error:
        if "synchroniz" not in str(error):
            raise
        waited = _line(error)
    allowed = named(case) in JOINED
    setting.keep("waits", not waited or allowed, part=named(case), waited=waited)


def whole(setting: Setting, precision: str) -> None:
    """Watch the steps of a run from the fourth on, with what the trainer does between them."""
    waited = ""

    def done(step: int) -> None:
        if setting.device != "cpu":
            torch.cuda.set_sync_debug_mode("error" if 3 <= step < 7 else "default")

    with tempfile.TemporaryDirectory() as out:
        try:
            simcse(
                setting, Path(out) / "run", f"train.precision={precision}", "train.max_steps=8",
                "train.batch_size=8", "train.log_steps=1000", "train.eval_steps=0",
                "train.save_steps=0", "train.dev=[none]", done=done,
            )  # fmt: skip
        except RuntimeError as error:
            if "synchroniz" not in str(error):
                raise
            waited = _line(error)
        finally:
            if setting.device != "cpu":
                torch.cuda.set_sync_debug_mode("default")
    setting.keep("waits", not waited, part=f"a run in {precision}", waited=waited)


def _line(error: BaseException) -> str:
    """Return the innermost line of the project's own code that an error came through."""
    found, trace = "", error.__traceback__
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if "cse_" in path and "site-packages" not in path:
            found = (
                f"{path.rsplit('/', 3)[-3]}/{'/'.join(path.rsplit('/', 2)[-2:])}:{trace.tb_lineno}"
            )
        trace = trace.tb_next
    return found or str(error)[:200]
