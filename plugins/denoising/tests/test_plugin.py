"""Every promise that the kit asks of the distribution, its parts and its recipe."""

from pathlib import Path

from cse_testkit import part_suites, recipe_suites

globals().update(recipe_suites("cse-denoising", Path(__file__).parent / "settings"))
globals().update(
    part_suites(
        "cse-denoising",
        {"loss.reconstruction": {"variants": ({"decoder": "copy"}, {"decoder": "new"})}},
    )
)
