"""The kit over IS-CSE's distribution, parts and recipes."""

from pathlib import Path

from cse_testkit import part_suites, recipe_suites, run_steps

SHORT = {"size": 8, "k": 3}
"""A buffer that is full after two of the kit's batches."""

globals().update(recipe_suites("cse-iscse", Path(__file__).parent / "settings"))
globals().update(
    part_suites(
        "cse-iscse",
        {
            "positives.knn-smoothing": {
                "options": SHORT,
                "variants": (
                    {"start": "at-once", "exclude": "row"},
                    {**SHORT, "exclude": "batch"},
                    {**SHORT, "view": "identical"},
                ),
            },
            "positives.kmeans-smoothing": {
                "options": {"size": 8, "clusters": 3},
                "variants": ({"clusters": 3, "start": "at-once", "iterations": 2, "gamma": 0.2},),
            },
        },
    )
)


def test_every_recipe_trains_with_a_full_buffer() -> None:
    sets = [f"positives.knn-smoothing.{name}={value}" for name, value in SHORT.items()]
    for recipe in ("is-cse", "is-cse-dclr", "is-cse-cards"):
        run = run_steps(recipe=recipe, sets=sets)
        assert "smoothed.loss" in run.scalars[-1] and not run.not_finite(), recipe
