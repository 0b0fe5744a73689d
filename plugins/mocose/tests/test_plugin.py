"""The kit over MoCoSE's distribution, parts and recipe."""

from pathlib import Path

from cse_testkit import part_suites, recipe_suites

BOTH = ["anchor", "positive"]

globals().update(recipe_suites("cse-mocose", Path(__file__).parent / "settings"))
globals().update(
    part_suites(
        "cse-mocose",
        {
            "aug.fgsm": {
                "variants": (
                    {"gradient": "previous", "relative": False, "epsilon": 0.01, "views": BOTH},
                )
            },
            "aug.token-drop": {
                "options": {"rate": 0.3},
                "variants": ({"places": None, "views": BOTH},),
            },
            "pool.projector": {"variants": ({"layers": 3, "dimension": 12}, {"layers": 0})},
            "pool.predictor": {"variants": ({"layers": 3, "branches": "all"},)},
            "negatives.queue": {
                "options": {"size": 10, "first_fill": 3},
                "variants": (
                    {"branch": None, "size": 6, "first_fill": 0},
                    {"size": 8, "first_fill": 2, "growth": "official"},
                    {"size": 10, "first_fill": 3, "update": "latest"},
                    {"size": 6, "first_fill": 3, "update": "oldest"},
                ),
            },
        },
    )
)
