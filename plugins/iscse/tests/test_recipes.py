"""The kit over IS-CSE's recipes."""

from __future__ import annotations

from pathlib import Path

from cse_testkit import RecipeSuite, recipe_suites

SHORT = ("positives.knn-smoothing.size=8", "positives.knn-smoothing.k=3")
"""A buffer that is full within the steps of the suite."""

globals().update(recipe_suites("cse-iscse", Path(__file__).parent / "settings"))


class TestSmoothing(RecipeSuite):
    recipe = "is-cse"
    sets = SHORT


class TestDclrSmoothing(RecipeSuite):
    recipe = "is-cse-dclr"
    sets = SHORT


class TestCardsSmoothing(RecipeSuite):
    recipe = "is-cse-cards"
    sets = SHORT
