"""Every promise that the kit asks of the distribution, its parts and its recipe."""

from pathlib import Path

from cse_testkit import part_suites, recipe_suites

VARIANTS = ({"fill": "sample", "replaced": "masked", "places": "content"}, {"others": ()})
globals().update(recipe_suites("cse-diffcse", Path(__file__).parent / "settings"))
globals().update(part_suites("cse-diffcse", {"loss.replaced-tokens": {"variants": VARIANTS}}))
