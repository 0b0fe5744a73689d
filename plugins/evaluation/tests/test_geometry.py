from __future__ import annotations

import math

import numpy as np
import pytest
from cse_evaluation import geometry
from cse_evaluation.geometry import alignment, measure, uniformity
from cse_evaluation.geometry_json import geometry_json
from cse_evaluation.pairs import pairs_from_rows
from scipy.special import ive

from cse_cli.models.spread import effective_rank, mean_cosine, singular_values, unit


def circle(count: int) -> np.ndarray:
    angles = 2 * np.pi * np.arange(count) / count
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def sphere(count: int, dimension: int, seed: int = 0) -> np.ndarray:
    return unit(np.random.default_rng(seed).normal(size=(count, dimension)))


def test_two_opposite_points() -> None:
    points = np.array([[1.0, 0.0], [-1.0, 0.0]])
    assert uniformity(points) == pytest.approx(-8.0)  # d^2 = 4, t = 2
    assert alignment(points[:1], points[1:]) == pytest.approx(4.0)
    assert mean_cosine(points) == pytest.approx(-1.0)
    assert effective_rank(singular_values(points)) == pytest.approx(1.0)


def test_uniform_circle_has_the_integral_of_the_kernel() -> None:
    # mean over the circle of exp(-2 (2 - 2 cos a)) = exp(-4) I0(4); without the N equal pairs
    count = 2000
    over_all = float(ive(0, 4.0))
    distinct = (over_all * count - 1) / (count - 1)
    assert uniformity(circle(count)) == pytest.approx(math.log(distinct), abs=1e-9)
    assert mean_cosine(circle(count)) == pytest.approx(-1 / (count - 1))
    np.testing.assert_allclose(singular_values(circle(count)), [1.0, 1.0])
    assert effective_rank(singular_values(circle(count))) == pytest.approx(2.0)


def test_collapsed_vectors() -> None:
    points = np.repeat(sphere(1, 16), 50, axis=0)
    assert uniformity(points) == pytest.approx(0.0, abs=1e-12)
    assert alignment(points, points) == 0.0
    assert mean_cosine(points) == pytest.approx(1.0)
    assert effective_rank(singular_values(points)) == pytest.approx(1.0, abs=1e-6)


def test_blocks_equal_the_plain_double_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    points = sphere(37, 5)
    slow = [
        math.exp(-2 * float(((points[i] - points[j]) ** 2).sum()))
        for i in range(37)
        for j in range(i + 1, 37)
    ]
    for block in (1, 100, 10**6):
        monkeypatch.setattr(geometry, "_BLOCK", block)
        assert uniformity(points) == pytest.approx(math.log(sum(slow) / len(slow)), abs=1e-12)
    cosines = (points @ points.T)[np.triu_indices(37, k=1)]
    assert mean_cosine(points) == pytest.approx(cosines.mean())


def test_what_is_undefined_is_none() -> None:
    one = sphere(1, 3)
    assert uniformity(one) is None
    assert mean_cosine(one) is None
    assert alignment(one[:0], one[:0]) is None
    assert effective_rank(singular_values(np.zeros((3, 2)))) == 0.0


def test_unit_keeps_zero_vectors_and_scales_the_rest() -> None:
    vectors = unit(np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32))
    np.testing.assert_allclose(vectors, [[0.6, 0.8], [0.0, 0.0]], atol=1e-15)
    assert vectors.dtype == np.float64


@pytest.mark.parametrize(("top", "threshold"), [(5.0, 4.0), (1.0, 0.8), (100.0, 80.0)])
def test_alignment_is_over_pairs_strictly_above_the_threshold(top: float, threshold: float) -> None:
    scores = [top, threshold, threshold * 1.01, 0.0]
    rows = [
        {"sentence1": f"a{i}", "sentence2": f"b{i}", "score": score}
        for i, score in enumerate(scores)
    ]
    pairs = pairs_from_rows("made.test", rows)
    first, second = sphere(4, 6, seed=1), sphere(4, 6, seed=2)
    found = measure(pairs, first, second, np.concatenate([first, second]))
    assert found.threshold == threshold
    assert found.alignment_pairs == 2
    expected = ((first - second) ** 2).sum(axis=1)[[0, 2]].mean()
    assert found.alignment == pytest.approx(expected)
    shown = geometry_json(found)
    assert shown["alignment"]["pairs"] == 2
    assert shown["alignment"]["file"] == "made.test"
    assert shown["alignment"]["scored_above"] == threshold
    assert shown["alignment"]["share_of_highest_score"] == 0.8
    assert shown["uniformity"]["sentences"] == 8
    assert shown["uniformity"]["pairs"] == 28
    assert shown["singular_values"]["values"][0] == 1.0


def test_many_sentences_are_sampled_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(geometry, "MOST_SENTENCES", 300)
    rows = [{"sentence1": f"a{i}", "sentence2": f"b{i}", "score": i % 2} for i in range(500)]
    points = sphere(1000, 4)
    pairs = pairs_from_rows("large", rows)
    found = measure(pairs, points[:500], points[500:], points)
    again = measure(pairs, points[:500], points[500:], points)
    assert (found.sentences, found.uniformity_sentences) == (1000, 300)
    assert found == again
    assert found.uniformity == pytest.approx(uniformity(points), abs=0.1)
