"""Resident memory of this process, and what a process of its own finds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def resident() -> float:
    """Return the resident memory of this process in MB, now."""
    return _status("VmRSS")


def peak() -> float:
    """Return the peak resident memory in MB, of this process or since ``forget_peak``."""
    return _status("VmHWM")


def forget_peak() -> bool:
    """Reset the peak to what is resident now; return whether the system can do so."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


def in_own_process(module: str, task: dict[str, Any]) -> dict[str, Any]:
    """Run ``python -m MODULE --child TASK`` and return the JSON of its last line.

    Raises:
        SystemExit: If it fails, with the end of what it said.
    """
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", module, "--child", json.dumps(task)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    if done.returncode:
        raise SystemExit(f"{module} failed with {json.dumps(task)}:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
