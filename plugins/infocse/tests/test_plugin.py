"""The kit over InfoCSE's distribution and parts."""

from __future__ import annotations

from cse_testkit import part_suites

globals().update(
    part_suites(
        "cse-infocse",
        {
            "positives.idc-kmeans": {"options": {"clusters": 2}},
            "positives.preceding-context": {"options": {"context": "mean"}},
            "positives.span": {"options": {"combine": "mean"}},
        },
        columns=("document", "title"),
    )
)
