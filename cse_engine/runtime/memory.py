"""Memory of freed tensors, which the C library keeps."""

from __future__ import annotations

import ctypes

TRIM_STEPS = 16
"""Steps after which freed memory is given back."""


def give_back() -> None:
    """Give memory that is free back to the system, where the C library can (glibc).

    Rows that lie end to end have another size in every step, so that gaps of old sizes pile up:
    a process that trains on long texts doubles within a hundred steps.
    """
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
