"""The kit over the recipe."""

from pathlib import Path

from cse_testkit import recipe_suites

globals().update(recipe_suites("cse-diffcse", Path(__file__).parent / "settings"))
