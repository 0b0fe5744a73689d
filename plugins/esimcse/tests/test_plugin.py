"""The kit over ESimCSE's distribution, parts and recipe, and the defaults of its parts."""

from pathlib import Path

from cse_esimcse.options import MomentumQueueOptions, WordRepetitionOptions
from cse_testkit import part_suites, recipe_suites

globals().update(recipe_suites("cse-esimcse", Path(__file__).parent / "settings"))
globals().update(
    part_suites(
        "cse-esimcse",
        {
            "aug.word-repetition": {
                "variants": (
                    {"count": "code", "when": "once", "rate": 0.5},
                    {"unit": "word", "rate": 0.5, "cap": None},
                )
            },
            "negatives.momentum-queue": {
                "options": {"size": 10},
                "variants": ({"size": 3, "branch": None, "view": "positive"},),
            },
        },
    )
)


def test_defaults() -> None:
    assert WordRepetitionOptions() == WordRepetitionOptions(
        rate=0.32, unit="token", count="paper", cap="auto", when="step"
    )
    assert MomentumQueueOptions() == MomentumQueueOptions(size=160, view="anchor", branch="ema")
