"""Real data and golden numbers that lie beside the repository, where there are any."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch


def shared_path(name: str) -> Path:
    """Return a path below the shared folder; skip the test where it is not there."""
    root = os.environ.get("CSE_SHARED") or Path(__file__).resolve().parents[2] / "shared"
    path = Path(root) / name
    if not path.exists():
        pytest.skip(f"no {name} in {root} (CSE_SHARED names the folder)")
    return path


def golden(name: str) -> Any:
    """Return the numbers of an authors' code; skip the test where they are not there."""
    return json.loads(shared_path(f"golden/{name}.json").read_text(encoding="utf-8"))


def tensor(rows: Any) -> torch.Tensor:
    """Return numbers in float64."""
    return torch.tensor(rows, dtype=torch.float64)
