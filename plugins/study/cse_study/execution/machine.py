"""What a run was made on."""

from __future__ import annotations

import os
import platform
import subprocess
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cse_cli.machine.processor import processor


def machine() -> dict[str, Any]:
    """Return what a run was made on: the commit of the toolkit, and the machine."""
    return {
        "commit": _commit(),
        "machine": platform.node(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "cpus": os.cpu_count(),
    }


def _commit() -> str:
    """Return the commit that the toolkit runs from, empty outside of a checkout."""
    spec = find_spec("cse_core")
    folder = Path(spec.origin).parent if spec is not None and spec.origin else Path()
    words = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--exclude", "*"]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(words, capture_output=True, text=True, timeout=20)
        return done.stdout.strip() if done.returncode == 0 else ""
    return ""
