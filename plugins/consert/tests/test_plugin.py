"""The kit over ConSERT's distribution, parts and recipe, and the defaults of its augmenters."""

from pathlib import Path
from typing import Any

from cse_consert.options import (
    EmbeddingDropoutOptions,
    FeatureCutoffOptions,
    TokenCutoffOptions,
    TokenShuffleOptions,
)
from cse_testkit import part_suites, recipe_suites, run_steps

BOTH = ["anchor", "positive"]
ON_WORDS = {"at": "word_embeddings", "rescale": True}

ON_EMBEDDINGS: dict[str, Any] = {"at": "input_embeddings", "rescale": False}

globals().update(recipe_suites("cse-consert", Path(__file__).parent / "settings"))
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


def test_defaults() -> None:
    """ConSERT's own reading of each augmenter, which docs/methods/consert.md states."""
    assert TokenShuffleOptions() == TokenShuffleOptions(rate=1.0, tokens="all")
    assert TokenCutoffOptions() == TokenCutoffOptions(**ON_EMBEDDINGS, rate=0.15, tokens="all")
    assert FeatureCutoffOptions() == FeatureCutoffOptions(**ON_EMBEDDINGS, rate=0.2)
    assert EmbeddingDropoutOptions() == EmbeddingDropoutOptions(
        **ON_EMBEDDINGS, rate=0.2, draw="each"
    )


def test_without_dropout_the_augmenters_alone_make_the_views() -> None:
    both = run_steps(recipe="consert", steps=1)
    none = run_steps({"aug": ["~feature-cutoff", "~token-shuffle"]}, recipe="consert", steps=1)
    assert (both.session.composition.model.dropout, both.session.composition.train.seed) == (0.0, 1)
    assert both.losses[0] > none.losses[0]
