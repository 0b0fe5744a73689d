"""Memory of freed tensors, which the C library keeps. Imports no torch."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

TRIM_STEPS = 16
"""Steps after which freed memory is given back."""
LARGE = 4 * 2**20
"""Bytes from which on a tensor has pages of its own."""
LARGE_STATES = 6 * 2**20
"""Bytes of the states of a pass that no cache holds: new pages for them cost nothing more."""
_HUGE = "THP_MEM_ALLOC_ENABLE"
"""Variable by which torch asks for huge pages."""
_SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_MMAP_THRESHOLD = -3  # of mallopt


def give_back() -> None:
    """Give memory that is free back to the system, where the C library can (glibc).

    Rows that lie end to end have another size in every step, so that gaps of old sizes pile up:
    a process that trains on long texts doubles within a hundred steps.
    """
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


def map_large_tensors(states: int) -> bool:
    """Let each large tensor have pages of its own, which go back when it is freed.

    That ends the gaps, and costs a fifth of the speed where pages are small, and where tensors fit
    into caches. So it is done only before torch is imported, with huge pages, and where the states
    of a pass take ``states`` bytes, at least ``LARGE_STATES``.

    Returns:
        Whether it was done.
    """
    library = ctypes.CDLL(None)
    huge = _SETTING.is_file() and "[never]" not in _SETTING.read_text(encoding="ascii")
    late = "torch" in sys.modules and os.environ.get(_HUGE) != "1"
    if states < LARGE_STATES or late or not huge or not hasattr(library, "mallopt"):
        return False
    os.environ[_HUGE] = "1"
    return bool(library.mallopt(_MMAP_THRESHOLD, LARGE))
