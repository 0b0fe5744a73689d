"""The kit over the distribution, its parts and recipes, beside loops over dimensions and texts."""

import math
from pathlib import Path
from typing import Any

import torch
from cse_redundancy.expander import Expander
from cse_redundancy.options import ExpanderOptions
from cse_testkit import LossSuite, make_setup, part_suites, recipe_suites
from torch import Tensor, nn

from cse_core.types import Batch, Negatives, Positives, StepContext

globals().update(part_suites("cse-redundancy", {"transform.expander": {
    "variants": ({"blocks": 2, "norms": "first", "wide": 12},)}}))  # fmt: skip
globals().update(recipe_suites("cse-redundancy", Path(__file__).parent / "settings"))


def columns(rows: Tensor) -> list[list[float]]:
    return [[float(x) for x in column] for column in rows.T]


def centred(values: list[float]) -> list[float]:
    mean = sum(values) / len(values)
    return [value - mean for value in values]


def covariances(one: Tensor, other: Tensor, less: int) -> list[list[float]]:
    """Return the covariances of dimensions, divided by the rows less so many, at least one."""
    many = max(len(one) - less, 1)
    left, right = ([centred(c) for c in columns(rows)] for rows in (one, other))
    return [[sum(x * y for x, y in zip(a, b, strict=True)) / many for b in right] for a in left]


class TestLossBarlowTwins(LossSuite):
    part = ("loss", "barlow-twins")
    options = {"off_diagonal": 0.3}
    variants = ({"affine": True}, {"teacher": "ema"})

    def slow(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext, options: Any
    ) -> float:
        one, other = batch.anchors, targets.vectors[:, 0]
        deviations = [
            [math.sqrt(matrix[i][i] + 1e-5) for i in range(len(matrix))]
            for matrix in (covariances(one, one, 0), covariances(other, other, 0))
        ]
        total = 0.0
        for i, row in enumerate(covariances(one, other, 0)):
            for j, value in enumerate(row):
                correlation = value / deviations[0][i] / deviations[1][j]
                total += (1 - correlation) ** 2 if i == j else 0.3 * correlation**2
        return total


class TestLossVicreg(LossSuite):
    part = ("loss", "vicreg")
    options = {"variant": "paper", "invariance": 2.0, "variance": 3.0, "covariance": 0.5}
    variants = ({"variant": "published"}, {"teacher": "ema"})

    def slow(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext, options: Any
    ) -> float:
        views = (batch.anchors, targets.vectors[:, 0])
        apart = sum(float((a - p).square().sum()) for a, p in zip(*views, strict=True))
        total = 2 * apart / len(batch.anchors)
        for view in views:
            matrix = covariances(view, view, 1)
            size = len(matrix)
            for i in range(size):
                total += 3 * max(0.0, 1 - math.sqrt(matrix[i][i] + 1e-4)) / size
                total += 0.5 * sum(matrix[i][j] ** 2 for j in range(size) if i != j) / size
        return total


class TestLossSigreg(LossSuite):
    part = ("loss", "sigreg")
    options = {"slices": 3, "share": 0.4, "knots": 9, "bound": 2.0}

    def slow(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext, options: Any
    ) -> float:
        views, size = (batch.anchors, targets.vectors[:, 0]), batch.anchors.shape[1]
        drawn = torch.randn(size, 3, generator=ctx.generator("slices"), dtype=batch.anchors.dtype)
        total = 0.0
        for view in views:
            for line in drawn.T:
                projected = [float(row @ line / line.norm()) for row in view]
                total += 0.4 * statistic(projected, 2.0, 9) / 3 / 2
        apart = sum(float(((a - p) / 2).square().mean()) for a, p in zip(*views, strict=True))
        return total + 0.6 * apart / len(batch.anchors)


def statistic(values: list[float], bound: float, knots: int) -> float:
    """Return the trapezoidal rule from minus the bound to the bound, point by point."""
    points = [bound * k / (knots - 1) for k in range(1 - knots, knots)]

    def height(t: float) -> float:
        wave = sum(complex(math.cos(t * x), math.sin(t * x)) for x in values) / len(values)
        return math.exp(-t * t / 2) * abs(wave - math.exp(-t * t / 2)) ** 2

    pairs = zip(points, points[1:], strict=False)
    return len(values) * sum((t - s) * (height(s) + height(t)) / 2 for s, t in pairs)


def test_the_expander_is_torchs_layers_of_each_view() -> None:
    """Batch normalisation of torch in training gives the same, of each view by itself."""
    made = Expander(ExpanderOptions(wide=10, dimension=6), make_setup(dimension=4)).double()
    block: Any = made.blocks[0]
    theirs = nn.Sequential(
        nn.Linear(4, 10), nn.BatchNorm1d(10), nn.ReLU(),
        nn.Linear(10, 10), nn.BatchNorm1d(10), nn.ReLU(), nn.Linear(10, 6),
    ).double()  # fmt: skip
    for place in (0, 3, 6):
        theirs[place].load_state_dict(block[place].state_dict(), strict=False)
    rows = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    assert torch.allclose(made.mapped(rows), theirs(rows), rtol=0, atol=1e-12)
