"""Real data and golden numbers that lie beside the repository, where there are any."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def shared_path(name: str) -> Path:
    """Return a path below the shared folder; skip the test where it is not there."""
    root = os.environ.get("CSE_SHARED") or Path(__file__).resolve().parents[2] / "shared"
    path = Path(root) / name
    if not path.exists():
        pytest.skip(f"no {name} in {root} (CSE_SHARED names the folder)")
    return path
