"""The kit over HiCL's distribution and parts."""

from __future__ import annotations

from cse_testkit import part_suites

SHORT = {"length": 4}
"""Segments of this length, so that the kit's short texts have several."""
CUT = {"sets": ("pool.segments.length=4",)}

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
