"""Draws of pairs and seeds against scipy, and Holm's correction against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from cse_study.results import bootstrap
from cse_study.results.bootstrap import SEED, compared, draws_of, draws_of_hits, holm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(5, 60))
def test_a_draw_is_the_spearman_of_the_drawn_pairs(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 4, count).astype(float)
    cosine = np.round(rng.normal(size=count), 1)
    index = rng.integers(count, size=count)
    times = np.bincount(index, minlength=count)[None].astype(float)
    ranks = (bootstrap._Ranks(gold).drawn(times), bootstrap._Ranks(cosine).drawn(times))
    found = bootstrap._pearson(*ranks, times)[0]
    if len(set(gold[index])) > 1 and len(set(cosine[index])) > 1:
        assert found == pytest.approx(spearmanr(gold[index], cosine[index]).statistic, abs=1e-9)
    else:
        assert found == 0


def of(seed: int, noise: float) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(7)
    gold = rng.uniform(0, 5, 400)
    return {"a.test": (gold, gold + np.random.default_rng(seed).normal(0, noise, 400))}


def test_draws_are_the_same_each_time_and_paired() -> None:
    first, second = draws_of(of(1, 2), ["a.test"], 200), draws_of(of(1, 2), ["a.test"], 200)
    assert (first == second).all()
    near = of(1, 2)["a.test"]
    moved = {"a.test": (near[0], near[1] * 3 + 1)}
    assert draws_of(moved, ["a.test"], 200) == pytest.approx(first)


def test_draws_of_hits_equal_a_loop() -> None:
    rng = np.random.default_rng(3)
    hits = [rng.random(40) < 0.3, rng.random(70) < 0.8]
    found = draws_of_hits(hits, 50)
    for place in range(50):
        shares = []
        for number, own in enumerate(hits):
            draws = np.random.default_rng((SEED, number, len(own)))
            taken = draws.multinomial(len(own), np.full(len(own), 1 / len(own)), 50)[place]
            right = sum(int(times) for times, hit in zip(taken, own, strict=True) if hit)
            shares.append(100 * right / len(own))
        assert found[place] == pytest.approx(sum(shares) / 2)


def test_a_clear_difference_is_shown_and_a_small_one_is_not() -> None:
    seeds = (1, 2, 3)
    good = {seed: draws_of(of(seed, 1.0), ["a.test"], 2000) for seed in seeds}
    same = {seed: draws_of(of(seed + 10, 1.0), ["a.test"], 2000) for seed in seeds}
    bad = {seed: draws_of(of(seed, 4.0), ["a.test"], 2000) for seed in seeds}

    def difference(left: dict[int, np.ndarray], right: dict[int, np.ndarray]) -> float:
        values = ({s: float(d.mean()) for s, d in each.items()} for each in (left, right))
        found = compared(*values, left, right, 400)
        assert found is not None and found.items == 400 and found.seeds == 3
        assert found.low <= found.value <= found.high
        return found.p

    assert difference(bad, good) < 0.01
    assert difference(same, good) > 0.05


def test_without_pairs_seeds_alone_tell_and_one_says_nothing() -> None:
    assert compared({1: 2.0}, {1: 1.0}, {}, {}, 0) is None
    assert compared({1: 2.0}, {2: 1.0}, {}, {}, 0) is None
    assert compared({1: 90.6, 2: 90.6}, {1: 90.0, 2: 90.0}, {}, {}, 0) is None
    equal = compared({1: 90.0, 2: 90.0}, {1: 90.0, 2: 90.0}, {}, {}, 0)
    assert equal is not None and (equal.value, equal.p) == (0.0, 1.0)
    found = compared({1: 2.0, 2: 2.5, 3: 2.2}, {1: 1.0, 2: 1.4, 3: 1.3}, {}, {}, 0)
    assert found is not None and found.items == 0
    assert found.value == pytest.approx(1.0)
    assert found.p < 0.01
    wide = compared({1: 2.0, 2: 0.0}, {1: 1.0, 2: 1.2}, {}, {}, 0)
    assert wide is not None and wide.p > 0.5


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("of_items", [0.05, 0.3])
def test_equal_methods_seldom_differ_whatever_the_number_of_seeds(
    count: int, of_items: float
) -> None:
    """Seeds drawn with replacement call 26, 17 and 10 % of equal methods different here."""
    rng = np.random.default_rng(0)
    trials, values = 600, []
    for _ in range(trials):
        items = rng.normal(0, of_items)
        point = {seed: float(items + rng.normal(0, 0.3)) for seed in range(count)}
        around = rng.normal(0, of_items, 1000)
        baseline, flat = dict.fromkeys(point, 0.0), np.zeros(1000)
        drawn = {seed: value + around for seed, value in point.items()}
        found = compared(point, baseline, drawn, dict.fromkeys(point, flat), 400)
        assert found is not None
        values.append(found.p)
    # Three standard errors of a share of 5 % (0.32 %) in 600 trials.
    assert np.mean(np.array(values) < 0.05) < 0.05 + 3 * 0.0089
    assert np.mean(np.array(values) < 0.05 / 16) < 0.0032 + 3 * 0.0023


def test_holm() -> None:
    assert holm([]) == []
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([0.2]) == pytest.approx([0.2])
