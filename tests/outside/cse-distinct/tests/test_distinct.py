from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from cse_distinct.distinct import first_of_each
from cse_distinct.isoscore import isoscore
from cse_testkit import MetricSuite, PluginSuite, RecipeSuite, StoreSuite


class TestPlugin(PluginSuite):
    distribution = "cse-distinct"


class TestRecipe(RecipeSuite):
    recipe = "distinct"


class TestDistinct(StoreSuite):
    part = ("negatives", "distinct")
    variants = ({"size": 5, "threshold": 0.5},)


class TestIsoScore(MetricSuite):
    part = ("metric", "isoscore")


def slow_isoscore(points: Any) -> float:
    """The paper's Algorithm 1, step by step."""
    points = points - points.mean(axis=0)
    _, _, axes = np.linalg.svd(points, full_matrices=True)
    variances = np.diag(np.cov(points @ axes.T, rowvar=False))
    n = len(variances)
    scaled = np.sqrt(n) * variances / np.linalg.norm(variances)
    defect = np.linalg.norm(scaled - 1) / np.sqrt(2 * (n - np.sqrt(n)))
    share = (n - defect**2 * (n - np.sqrt(n))) ** 2 / n**2
    return float((n * share - 1) / (n - 1))


@pytest.mark.parametrize(("count", "dimension"), [(50, 8), (9, 16), (200, 3)])
def test_isoscore_is_the_papers_algorithm(count: int, dimension: int) -> None:
    draws = np.random.default_rng(3)
    points = draws.normal(size=(count, dimension)) * draws.uniform(0.1, 3, size=dimension) + 2
    assert isoscore(points) == pytest.approx(slow_isoscore(points), abs=1e-10)


def test_the_first_of_near_duplicates_is_taken() -> None:
    angles = torch.tensor([0.0, 0.2, 0.4, 1.5, 1.6])
    vectors = torch.stack([angles.cos(), angles.sin()], dim=1)
    taken = first_of_each(vectors, threshold=float(torch.cos(torch.tensor(0.3))))
    assert taken.tolist() == [True, False, True, True, False]
