"""The kit over the distribution, its part and its recipe."""

from pathlib import Path

from cse_testkit import part_suites, recipe_suites

globals().update(
    part_suites(
        "cse-crop",
        {
            "aug.crop": {
                "variants": (
                    {"shortest": 5, "sentences": 1},
                    {"unit": "words", "views": ("positive",), "least": 0.5, "most": 1.0},
                )
            }
        },
    )
)
globals().update(recipe_suites("cse-crop", Path(__file__).parent / "settings"))
