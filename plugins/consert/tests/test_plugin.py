"""The kit over ConSERT's distribution and parts."""

from __future__ import annotations

from cse_testkit import part_suites

BOTH = ["anchor", "positive"]
ON_WORDS = {"at": "word_embeddings", "rescale": True}

globals().update(
    part_suites(
        "cse-consert",
        {
            "aug.token-shuffle": {"variants": ({"rate": 0.5, "tokens": "content", "views": BOTH},)},
            "aug.token-cutoff": {"variants": ({**ON_WORDS, "tokens": "content", "rate": 0.5},)},
            "aug.feature-cutoff": {"variants": ({**ON_WORDS, "views": BOTH},)},
            "aug.embedding-dropout": {"variants": (ON_WORDS, {"draw": "count"})},
        },
    )
)
