"""The kit over CARDS's distribution and parts."""

from __future__ import annotations

from cse_testkit import part_suites

globals().update(
    part_suites(
        "cse-cards",
        {
            "aug.case-switch": {"options": {"rate": 0.3}, "variants": ({"variant": "v1"},)},
            "negatives.retrieved": {
                "options": {"knn": 5},
                "variants": ({"knn": 7, "take": 3, "refresh": "round", "weight": 0.5},),
            },
        },
    )
)
