"""The kit over IS-CSE's recipes."""

from __future__ import annotations

from pathlib import Path

from cse_testkit import RecipeSuite

SETTINGS = Path(__file__).parent / "settings"
SHORT = ("positives.knn-smoothing.size=8", "positives.knn-smoothing.k=3")
"""A buffer that is full within the steps of the suite."""


class TestIscse(RecipeSuite):
    recipe = "is-cse"
    settings = SETTINGS / "is-cse.toml"


class TestIscseSmoothing(RecipeSuite):
    recipe = "is-cse"
    sets = SHORT


class TestIscseDclr(RecipeSuite):
    recipe = "is-cse-dclr"
    settings = SETTINGS / "is-cse-dclr.toml"


class TestIscseDclrSmoothing(RecipeSuite):
    recipe = "is-cse-dclr"
    sets = SHORT


class TestIscseCards(RecipeSuite):
    recipe = "is-cse-cards"
    settings = SETTINGS / "is-cse-cards.toml"


class TestIscseCardsSmoothing(RecipeSuite):
    recipe = "is-cse-cards"
    sets = SHORT
