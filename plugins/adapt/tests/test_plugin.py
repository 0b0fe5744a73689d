"""The kit over the distribution, its part and its recipe."""

from pathlib import Path

from cse_testkit import part_suites, recipe_suites

globals().update(
    part_suites("cse-adapt", {"aug.question": {"variants": ({"titles": 1.0, "keep": 0.0},)}})
)
globals().update(recipe_suites("cse-adapt", Path(__file__).parent / "settings"))
