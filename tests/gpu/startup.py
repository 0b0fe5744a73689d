"""What it costs to begin: imports, the first use of the device, the first steps."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from tests.gpu.runs import simcse
from tests.gpu.setting import Setting

IMPORTS = ("torch", "transformers", "cse_core.training.run", "sentence_transformers")


def run(setting: Setting) -> None:
    """Measure each in turn; imports in processes of their own, the second time that they run."""
    for name in IMPORTS[: 1 if setting.small else None]:
        with setting.trying("import", what=name):
            code = f"import time; began = time.time(); import {name}; print(time.time() - began)"
            took = [
                subprocess.run(
                    [sys.executable, "-c", code], capture_output=True, text=True, check=True
                ).stdout
                for _ in range(1 if setting.small else 2)
            ]
            setting.keep("import", None, what=name, seconds=float(took[-1].split()[-1]))
    began = time.perf_counter()
    torch.zeros(1, device=setting.device).add(1).cpu()
    setting.keep("first use of the device", None, seconds=time.perf_counter() - began)
    ends: list[float] = []

    def note(_: int) -> None:
        setting.wait()
        ends.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as out:
        began = time.perf_counter()
        simcse(
            setting, Path(out) / "run", "train.max_steps=5", "train.batch_size=8",
            "train.dev=[none]", "train.eval_steps=0", "train.save_steps=0", done=note,
        )  # fmt: skip
    setting.keep("a run until its first step is done", None, seconds=ends[0] - began)
    for number, (one, other) in enumerate(zip(ends, ends[1:], strict=False), 2):
        setting.keep(f"step {number}", None, seconds=other - one)
