"""What the numbers were measured on: processor, instruction sets, versions; imports no torch."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tests.benchmarks.resident import ROOT

SETS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "asimddp", "bf16")
"""Instruction sets that matter to matrix products, as Linux calls them."""
CODE = ("tests/benchmarks", "cse_core", "cse_cli", "plugins")
"""Folders of what is measured."""
PACKAGES = ("torch", "transformers", "sentence-transformers")


def machine() -> dict[str, str]:
    """Return processor, instruction sets, cores, memory, system and versions in words."""
    import psutil

    info = _cpu_info()
    flags = set(info.get("flags", info.get("Features", "")).split())
    found = {
        "processor": info.get("model name", platform.processor() or platform.machine()),
        "instruction sets": ", ".join(name for name in SETS if name in flags) or "not known",
        "cores": str(len(psutil.Process().cpu_affinity())),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }
    return {**found, **{name: _version(name) for name in PACKAGES}}


def code() -> str:
    """Return the last commit of what is measured, with a word where files differ from it."""
    commit = _git("log", "-1", "--format=%h", "--", *CODE)
    if not commit:
        return "not under version control"
    return f"{commit} with changes" if _git("status", "--porcelain", "--", *CODE) else commit


def _git(*words: str) -> str:
    try:
        done = subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip()


def busy(seconds: float = 1.0) -> float:
    """Return the share of the processor that others use while this process sleeps."""
    import psutil

    return psutil.cpu_percent(seconds) / 100


def no_bf16() -> str | None:
    """Return why bf16 is not measured here; None where the processor computes in it."""
    import torch

    from cse_core.runtime.device import fast_bf16

    if fast_bf16(torch.device("cpu")):
        return None
    return "this processor has no bf16 instructions (avx512_bf16 or amx_bf16)"


def precisions() -> tuple[str, ...]:
    """Return the precisions to measure: those that the processor is fast in."""
    return ("fp32",) if no_bf16() else ("fp32", "bf16")


def _cpu_info() -> dict[str, str]:
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return {}
    first = path.read_text(encoding="utf-8", errors="replace").split("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
