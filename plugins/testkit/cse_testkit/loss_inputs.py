"""Made-up inputs of losses."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from cse_core.runtime.seeds import generator
from cse_core.types import Positives


def draws_of(name: str) -> torch.Generator:
    """Return draws by a name, the same at each call."""
    return generator(torch.device("cpu"), "loss suite", name)


def in_order(group: Positives, order: Tensor) -> Positives:
    """Return positives of the anchors at ``order`` ``[A]``."""
    weights = None if group.weights is None else group.weights[order]
    return replace(group, vectors=group.vectors[order], weights=weights)


def some_weights(rows: int, count: int) -> Tensor:
    """Return ``[A, P]`` weights: none for the first anchor, one positive for the last."""
    weights = torch.ones(rows, count)
    weights[0] = 0
    weights[-1, 1:] = 0
    return weights
