"""What a measurement belongs to: processor, device, threads and torch; all without torch."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_CPU, _GPUS = Path("/proc/cpuinfo"), Path("/proc/driver/nvidia/gpus")
_INSTRUCTIONS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "sve", "bf16")
"""Instruction sets that matrix products are written for."""
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Place:
    """Where training runs.

    Attributes:
        processor: Name of the CPU, with the instruction sets that matter.
        device: ``cpu``, or the name of the GPU.
        threads: How many, or what the number follows from where nobody chose one.
        torch: Version of torch.
    """

    processor: str
    device: str
    threads: str
    torch: str


def place_of(device: Any, threads: int | None) -> Place:
    """Return where training on a device runs.

    Args:
        device: A ``torch.device``.
        threads: ``train.threads``.
    """
    name = str(device.type)
    if name == "cuda":
        import torch

        name = torch.cuda.get_device_name(device)
    return Place(processor(), name, thread_rule(threads), torch_version())


def expected_place(device: str, threads: int | None) -> Place | None:
    """Return where training would run, as far as that is seen without torch.

    Args:
        device: ``train.device``.
        threads: ``train.threads``.

    Returns:
        None where only torch could tell.
    """
    name = device.partition(":")[0]
    if name in ("auto", "cuda"):
        gpus = gpu_names()
        if gpus is None or len(set(gpus)) > 1 or (name == "cuda" and not gpus):
            return None
        name = gpus[0] if gpus else "cpu"
    return Place(processor(), name, thread_rule(threads), torch_version())


@cache
def processor() -> str:
    """Return the CPU's name, its family, model and stepping, and its instruction sets.

    A virtual machine's name alone may stand for several generations of processors.
    """
    try:
        text = _CPU.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or platform.machine()
    facts: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            facts.setdefault(key.strip(), value.strip())
    name = facts.get("model name") or platform.processor() or platform.machine()
    numbers = [facts[key] for key in ("cpu family", "model", "stepping") if key in facts]
    flags = set((facts.get("flags") or facts.get("Features") or "").split())
    kind = f" ({'/'.join(numbers)})" if numbers else ""
    return ", ".join([f"{name}{kind}", *(each for each in _INSTRUCTIONS if each in flags)])


def gpu_names() -> list[str] | None:
    """Return the names of the GPUs that torch would see, None where only torch could tell."""
    if torch_version().endswith("+cpu") or platform.system() == "Darwin":
        return []
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return []
    if platform.system() != "Linux" or "+rocm" in torch_version():
        return None
    names = []
    for file in sorted(_GPUS.glob("*/information")):
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return None
        names += [line.partition(":")[2].strip() for line in lines if line.startswith("Model:")]
    return names


def thread_rule(threads: int | None) -> str:
    """Return how many threads were asked for, or what torch's own choice follows from."""
    if threads is not None:
        return str(threads)
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        count = os.cpu_count() or 1
    said = [f"{name}={os.environ[name]}" for name in _THREAD_VARIABLES if os.environ.get(name)]
    return ", ".join([f"those of {count} processors", *said])


@cache
def torch_version() -> str:
    """Return the version of torch, empty where it is not installed."""
    try:
        return version("torch")
    except PackageNotFoundError:
        return ""
