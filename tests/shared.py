"""Real data and golden numbers that lie beside the repository, where there are any."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn


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


def fill(named: Iterable[tuple[str, nn.Parameter]], seed: int) -> None:
    """Give parameters the numbers that the golden files describe."""
    for place, (name, parameter) in enumerate(sorted(named)):
        drawn = np.random.RandomState(seed + place).standard_normal(tuple(parameter.shape))
        norm = "norm" in name.lower() and name.endswith("weight")
        parameter.data = tensor(1 + 0.4 * (0.25 * drawn) if norm else 0.25 * drawn)


def compare(
    value: torch.Tensor, leaves: Mapping[str, torch.Tensor], case: Mapping[str, Any], atol: float
) -> None:
    """Compare a value with a case's ``loss``, and its gradients with ``grad_NAME``."""
    assert float(value.detach()) == pytest.approx(case["loss"], rel=0, abs=atol)
    found = torch.autograd.grad(value, [*leaves.values()], retain_graph=True)
    for name, gradient in zip(leaves, found, strict=True):
        wanted = tensor(case[f"grad_{name}"])
        assert torch.allclose(gradient, wanted, rtol=0, atol=atol), f"{case.get('name')}: {name}"
