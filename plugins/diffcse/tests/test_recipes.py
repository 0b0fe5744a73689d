"""The kit over the recipe."""

from __future__ import annotations

from pathlib import Path

from cse_testkit import recipe_suites

globals().update(recipe_suites("cse-diffcse", Path(__file__).parent / "settings"))
