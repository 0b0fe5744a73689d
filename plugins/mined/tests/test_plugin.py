"""The kit over the distribution, its miner and its recipe."""

from cse_testkit import part_suites, recipe_suites

globals().update(
    part_suites(
        "cse-mined",
        {
            "positives.mined": {
                "options": {"every": 2, "rounds": 2, "margin": -1.0, "take": "drawn"},
                "variants": ({"every": 1, "margin": -1.0, "strategy": "absolute", "number": 2},),
            }
        },
    )
)
globals().update(recipe_suites("cse-mined"))
