"""What the numbers were measured on: processor, instruction sets, versions; imports no torch."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tests.benchmarks.resident import ROOT

SETS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "asimddp", "bf16")
"""Instruction sets that matter to matrix products, as Linux calls them."""
CODE = ("tests.benchmarks", "cse_core", "cse_cli", "plugins")
"""Folders of what is measured."""
PACKAGES = ("torch", "transformers", "sentence-transformers")


def machine() -> dict[str, str]:
    """Return processor, instruction sets, cores, memory, system and versions in words."""
    info = _cpu_info()
    flags = set(info.get("flags", info.get("Features", "")).split())
    found = {
        "processor": info.get("model name", platform.processor() or platform.machine()),
        "instruction sets": ", ".join(name for name in SETS if name in flags) or "not known",
        "cores": str(_cores()),
        "memory": _memory(),
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


def busy(seconds: float = 1.0) -> float | None:
    """Return the share of the processor that others use while this process sleeps.

    None where the system does not tell.
    """
    before = _processor_time()
    time.sleep(seconds)
    after = _processor_time()
    if before is None or after is None or after[1] <= before[1]:
        return None
    return max(0.0, 1 - (after[0] - before[0]) / (after[1] - before[1]))


def _processor_time() -> tuple[int, int] | None:
    """Return idle and all time of all cores, in ticks."""
    path = Path("/proc/stat")
    if not path.exists():
        return None
    ticks = [int(word) for word in path.read_text(encoding="ascii").split("\n")[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def no_bf16() -> str | None:
    """Return why bf16 is not measured here; None where the processor computes in it."""
    import torch

    from cse_core.runtime.device import fast_bf16

    if fast_bf16(torch.device("cpu")):
        return None
    return "this processor has no bf16 instructions (avx512_bf16 or amx_bf16)"


def precisions(wanted: str) -> tuple[str, ...]:
    """Return the formats to measure: those named, or for ``auto`` what the processor is fast in."""
    if wanted == "auto":
        return ("fp32",) if no_bf16() else ("fp32", "bf16")
    return tuple(wanted.split(","))


def _cpu_info() -> dict[str, str]:
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return {}
    first = path.read_text(encoding="utf-8", errors="replace").split("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _cores() -> int:
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def _memory() -> str:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return "not known"
    return f"{size / 2**30:.0f} GiB"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
