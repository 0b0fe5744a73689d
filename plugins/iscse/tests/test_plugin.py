"""The kit over IS-CSE's distribution and parts."""

from __future__ import annotations

from cse_testkit import part_suites

SHORT = {"size": 8, "k": 3}
"""A buffer that is full after two of the kit's batches."""

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
