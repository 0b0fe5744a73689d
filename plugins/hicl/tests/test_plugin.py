"""The kit over HiCL's distribution, parts and recipes, and the defaults of its parts."""

from pathlib import Path

from cse_hicl.options import (
    AveragingOptions,
    EntailmentOptions,
    SameSequenceOptions,
    SegmentsOptions,
)
from cse_testkit import part_suites, recipe_suites

SHORT = {"length": 4}
"""Segments of this length, so that the kit's short texts have several."""
CUT = {"sets": ("pool.segments.length=4",)}

globals().update(recipe_suites("cse-hicl", Path(__file__).parent / "settings"))
globals().update(
    part_suites(
        "cse-hicl",
        {
            "pool.segments": {
                "options": SHORT,
                "variants": (
                    {**SHORT, "wrap": "sentence", "aggregate": "mean", "join": "before-heads"},
                ),
            },
            "positives.same-sequence": CUT,
            "negatives.averaging": CUT,
            "loss.entailment": CUT,
        },
    )
)


def test_defaults() -> None:
    """The paper's reading of each part, as far as it has one."""
    assert SegmentsOptions() == SegmentsOptions(
        length=32, aggregate="weighted", wrap="segment", join="after-heads"
    )
    assert SameSequenceOptions() == SameSequenceOptions(level="segment", view="positive", most=16)
    assert AveragingOptions() == AveragingOptions(level="segment")
    assert EntailmentOptions() == EntailmentOptions(
        level="segment", sentences="anchor", temperature=0.05, reduction="mean", same_text="mask"
    )
