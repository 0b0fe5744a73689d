"""The kit over ESimCSE's distribution and parts."""

from __future__ import annotations

from cse_testkit import part_suites

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
