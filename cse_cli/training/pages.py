"""Processor time that the system takes to clear memory, and the allocator that saves it.

glibc maps new pages for each tensor of over 32 MB, which the system clears: of steps on long texts
that is a third. tcmalloc keeps the pages of freed tensors.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Mapping

from cse_core.reporter import Reporter

MUCH = 0.15
"""Share of the processor's time from which the system takes much."""
LEAST = 10.0
"""Processor seconds below which a share says nothing."""
_SONAME = "libtcmalloc_minimal.so.4"


def by_tcmalloc() -> bool:
    """Tell whether tcmalloc serves the memory of this process."""
    return hasattr(ctypes.CDLL(None), "tc_malloc")


def pages_advice(since: os.times_result) -> str | None:
    """Say what to type if the system has taken much of the processor's time since then.

    None outside of glibc, where tcmalloc is there already, and after less than ``LEAST`` seconds.
    """
    now = os.times()
    user, system = now.user - since.user, now.system - since.system
    took = user + system
    if took < LEAST or system < MUCH * took or platform.libc_ver()[0] != "glibc" or by_tcmalloc():
        return None
    from ctypes.util import find_library

    there = find_library("tcmalloc_minimal")
    first = "" if there else "install tcmalloc (Debian, Ubuntu: libtcmalloc-minimal4), then "
    return (
        f"the system takes {system / took:.0%} of the processor's time, mostly to clear memory "
        f"for large tensors; {first}run the command with LD_PRELOAD={there or _SONAME}"
    )


class PagesWatch(Reporter):
    """Warns once where the system takes much of a run's time on a processor."""

    def __init__(self) -> None:
        self._since = os.times()
        self._warned = False

    def begin(self, round_number: int, steps: int, done: int) -> None:
        """Count from here."""
        self._since = os.times()

    def check(self, line: Mapping[str, float], sizes: Mapping[str, int]) -> list[str]:
        """Warn where much was taken since the round began."""
        said = None if self._warned else pages_advice(self._since)
        self._warned |= said is not None
        return [said] if said else []
