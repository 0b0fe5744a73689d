"""Peak memory of what runs inside: of the device, or of this process on a CPU."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

_CLEAR, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


@dataclass
class Peak:
    """Most memory that was in use.

    Attributes:
        bytes: On a GPU of tensors, on a CPU of the whole process; None where it is not known.
        since_start: Whether it is that of the process since its start, where the system cannot
            start again.
    """

    bytes: int | None = None
    since_start: bool = False


@contextmanager
def peak_memory(device: torch.device) -> Iterator[Peak]:
    """Give a peak that is known when the context is left."""
    peak = Peak()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        yield peak
        peak.bytes = int(torch.cuda.max_memory_allocated(device))
        return
    _give_back()
    peak.since_start = not _forget()
    yield peak
    peak.bytes = _most()


def _give_back() -> None:
    """Return freed memory to the system, as far as the C library can."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):  # another C library
        pass


def _forget() -> bool:
    try:
        _CLEAR.write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


def _most() -> int | None:
    try:
        lines = _STATUS.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
