"""The kit over SimCSE's recipes."""

from __future__ import annotations

from pathlib import Path

from cse_testkit import RecipeSuite

SETTINGS = Path(__file__).parent / "settings"


class TestSimcse(RecipeSuite):
    recipe = "simcse"
    settings = SETTINGS / "simcse.toml"


class TestSupervised(RecipeSuite):
    recipe = "simcse-supervised"
    settings = SETTINGS / "simcse-supervised.toml"
