"""Resident memory of this process, and what a process of its own finds."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_STATUS = Path("/proc/self/status")
_RESET = "5"
"""What Linux takes for: forget the peak so far."""


def resident() -> float:
    """Return the resident memory of this process in MB, now; its peak where that is not known."""
    return _status("VmRSS") or peak()


def peak() -> float:
    """Return the peak resident memory in MB, of this process or since ``forget_peak``.

    Linux counts what the process was before it became this program in ``ru_maxrss``, so there the
    peak is read from its status.
    """
    printed = _status("VmHWM")
    if printed is not None:
        return printed
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 2**20 if sys.platform == "darwin" else most / 1024


def forget_peak() -> bool:
    """Reset the peak to what is resident now; return whether the system can do so."""
    try:
        Path("/proc/self/clear_refs").write_text(_RESET, encoding="ascii")
    except OSError:
        return False
    return True


def _paths() -> list[str]:
    printed = os.environ.get("PYTHONPATH")
    return [printed] if printed else []


def _status(name: str) -> float | None:
    if not _STATUS.exists():
        return None
    lines = _STATUS.read_text(encoding="utf-8").splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(name)), None)


def in_own_process(module: str, task: dict[str, Any]) -> dict[str, Any]:
    """Run ``python -m MODULE --child TASK`` and return the JSON of its last line.

    Raises:
        SystemExit: If it fails, with the end of what it said.
    """
    done = subprocess.run(
        [sys.executable, "-m", module, "--child", json.dumps(task)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *_paths()])},
    )
    if done.returncode:
        raise SystemExit(f"{module} failed with {json.dumps(task)}:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
