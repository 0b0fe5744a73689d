"""The global loss and the whole objective in loops, as the recipes compose them."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from plugins.hicl.tests.test_golden import objective
from tests.fixtures.equations import equation

LENGTHS = [[32, 32, 6], [20], [32, 8]]
"""Tokens of the segments of three texts."""
ALPHA, BETA, TEMPERATURE = 0.15, 3e-4, 0.05
"""Of the recipes."""


def drawn() -> dict[str, Any]:
    """Return vectors of the segments in two views, as the golden file holds them."""
    draws = torch.Generator().manual_seed(0)
    first = torch.randn(6, 8, dtype=torch.float64, generator=draws)
    second = first + torch.randn(6, 8, dtype=torch.float64, generator=draws)
    return {
        "slice_length": 32,
        "sequence_token_lengths": [sum(each) for each in LENGTHS],
        "h_view1": first.tolist(),
        "h_view2": second.tolist(),
    }


def texts(rows: list[list[float]]) -> list[Tensor]:
    """Return the weighted means of the segments of each text."""
    joined, place = [], 0
    for lengths in LENGTHS:
        total = torch.zeros(8, dtype=torch.float64)
        for length in lengths:
            total = total + length / sum(lengths) * torch.tensor(rows[place], dtype=torch.float64)
            place += 1
        joined.append(total)
    return joined


def contrast(anchor: Tensor, positive: Tensor, negatives: list[Tensor]) -> float:
    """Return ``-log p`` of the positive."""
    masses = [
        math.exp(float(anchor @ other / (anchor.norm() * other.norm())) / TEMPERATURE)
        for other in (positive, *negatives)
    ]
    return -math.log(masses[0] / sum(masses))


def global_loss(numbers: dict[str, Any], reading: str) -> float:
    first, second = (texts(numbers[f"h_view{view}"]) for view in (1, 2))
    others = {"target": second, "anchor": first}[reading]
    each = [contrast(first[i], second[i], others[:i] + others[i + 1 :]) for i in range(3)]
    return sum(each) / 3


def local_loss(numbers: dict[str, Any], reading: str) -> float:
    first, second = (
        [torch.tensor(row, dtype=torch.float64) for row in numbers[f"h_view{view}"]]
        for view in (1, 2)
    )
    others = {"target": second, "anchor": first}[reading]
    owner = [text for text, lengths in enumerate(LENGTHS) for _ in lengths]
    each = [
        contrast(first[i], second[i], [others[j] for j in range(6) if owner[j] != owner[i]])
        for i in range(6)
    ]
    return sum(each) / 6


def entailment(numbers: dict[str, Any]) -> float:
    whole = texts(numbers["h_view1"])
    owner = [text for text, lengths in enumerate(LENGTHS) for _ in lengths]
    rows = [torch.tensor(row, dtype=torch.float64) for row in numbers["h_view1"]]
    both = zip(rows, owner, strict=True)
    each = [contrast(row, whole[own], whole[:own] + whole[own + 1 :]) for row, own in both]
    return sum(each) / 6


@equation("HiCL", "Eq. 1", "loss.global of recipe hicl")
def test_global_loss() -> Iterator[tuple[Any, float]]:
    """Negatives of the second view, as in the base methods' code, and of the first, as printed."""
    numbers = drawn()
    for reading in ("target", "anchor"):
        found = objective(numbers, f"loss.global.in_batch={reading}")
        yield found.parts["global.loss"], global_loss(numbers, reading)


@equation("HiCL", "Eq. 2; Section 3.2, alpha * local + (1 - alpha) * global", "recipe hicl")
def test_the_sum() -> Iterator[tuple[Any, float]]:
    numbers = drawn()
    for reading in ("target", "anchor"):
        sets = [f"loss.{name}.in_batch={reading}" for name in ("local", "global")]
        found = objective(numbers, *sets)
        local, whole = local_loss(numbers, reading), global_loss(numbers, reading)
        yield found.parts["local.loss"], local
        yield found.value, ALPHA * local + (1 - ALPHA) * whole


@equation("HiCL", "A.6, the sum of HiCLv2", "recipe hicl-v2")
def test_the_sum_of_hiclv2() -> Iterator[tuple[Any, float]]:
    numbers = drawn()
    found = objective(numbers, recipe="hicl-v2")
    terms = (local_loss(numbers, "target"), global_loss(numbers, "target"), entailment(numbers))
    yield found.parts["entailment.loss"], terms[2]
    yield found.value, ALPHA * terms[0] + (1 - ALPHA - BETA) * terms[1] + BETA * terms[2]
