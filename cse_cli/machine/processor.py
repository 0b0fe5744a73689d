"""The name of this machine's processor."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

_CPU = Path("/proc/cpuinfo")
_INSTRUCTIONS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "sve", "bf16")
"""Instruction sets that matrix products are written for."""


@cache
def processor() -> str:
    """Return the CPU's name, its family, model and stepping, and its instruction sets.

    A virtual machine's name alone may stand for several generations of processors.
    """
    try:
        text = _CPU.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or platform.machine()
    lines = (line.partition(":") for line in reversed(text.splitlines()))  # the first core counts
    facts = {key.strip(): value.strip() for key, _, value in lines}
    name = facts.get("model name") or platform.processor() or platform.machine()
    numbers = [facts[key] for key in ("cpu family", "model", "stepping") if key in facts]
    flags = set((facts.get("flags") or facts.get("Features") or "").split())
    kind = f" ({'/'.join(numbers)})" if numbers else ""
    return ", ".join([f"{name}{kind}", *(flag for flag in _INSTRUCTIONS if flag in flags)])
