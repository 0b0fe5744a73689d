"""A run that was stopped and resumed ends with the weights of one that was not, bit for bit."""

from __future__ import annotations

import os
import signal
import tempfile
from itertools import product
from pathlib import Path

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when cuBLAS begins

import torch

from cse_core.training.run import resume
from cse_core.training.signals import Stopped
from tests.benchmarks.inputs import registry
from tests.gpu.runs import Steps, simcse
from tests.gpu.setting import Setting, exact

VARIANTS = {"plain": (), "chunks": ("train.chunk_size=16",), "fgsm": ("aug=[fgsm]",)}


def run(setting: Setting) -> None:
    """Compare the files of the weights, with deterministic kernels."""
    exact()
    torch.use_deterministic_algorithms(True)
    formats = ("fp32",) if setting.small else ("fp32", "bf16")
    variants = list(VARIANTS)[:1] if setting.small else VARIANTS
    for variant, precision in product(variants, formats):
        about = {"variant": variant, "format": precision}
        with setting.trying("resume", **about), tempfile.TemporaryDirectory() as folder:
            compare(setting, Path(folder), about)


def compare(setting: Setting, folder: Path, about: dict[str, str]) -> None:
    """Make the run whole, whole again, and in two parts."""
    steps, batch = (4, 8) if setting.small else (12, 64)
    sets = [
        *VARIANTS[about["variant"]], f"train.precision={about['format']}",
        f"train.max_steps={steps}", f"train.batch_size={batch}", "train.dev=[none]",
        "train.eval_steps=0", "train.save_steps=0",
    ]  # fmt: skip

    def stop(step: int) -> None:
        if step == steps // 2:
            signal.raise_signal(signal.SIGTERM)

    for name in ("whole", "again"):
        simcse(setting, folder / name, *sets)
    try:
        simcse(setting, folder / "parts", *sets, done=stop)
    except Stopped:
        resume(folder / "parts", registry(), reporter=Steps())
    weights = {name: written(folder / name / "model") for name in ("whole", "again", "parts")}
    repeats, resumes = (weights["whole"] == weights[name] for name in ("again", "parts"))
    setting.keep("resume", repeats and resumes, **about, repeats=repeats, resumes=resumes)


def written(model: Path) -> dict[str, bytes]:
    """Return the files of a model's weights."""
    files = sorted(model.rglob("*.safetensors"))
    if not files:
        raise FileNotFoundError(f"{model.name} has no weights")
    return {str(file.relative_to(model)): file.read_bytes() for file in files}
