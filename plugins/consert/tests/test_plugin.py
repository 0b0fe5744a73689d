"""The kit over ConSERT's distribution, parts and recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cse_consert.options import (
    EmbeddingDropoutOptions,
    FeatureCutoffOptions,
    TokenCutoffOptions,
    TokenShuffleOptions,
)
from cse_testkit import AugmenterSuite, PluginSuite, RecipeSuite

from cse_core.options import AugmenterOptions


class TestPlugin(PluginSuite):
    distribution = "cse-consert"


class TestTokenShuffle(AugmenterSuite):
    part = ("aug", "token-shuffle")
    variants = ({"rate": 0.5, "tokens": "content", "views": ["anchor", "positive"]},)


class TestTokenCutoff(AugmenterSuite):
    part = ("aug", "token-cutoff")
    variants = ({"at": "word_embeddings", "tokens": "content", "rate": 0.5, "rescale": True},)


class TestFeatureCutoff(AugmenterSuite):
    part = ("aug", "feature-cutoff")
    variants = ({"at": "word_embeddings", "rescale": True, "views": ["anchor", "positive"]},)


class TestEmbeddingDropout(AugmenterSuite):
    part = ("aug", "embedding-dropout")
    variants = ({"at": "word_embeddings", "rescale": True}, {"draw": "count"})


ON_EMBEDDINGS = {"views": None, "at": "input_embeddings", "rescale": False}
DEFAULTS: dict[type[AugmenterOptions], dict[str, Any]] = {
    TokenShuffleOptions: {"views": None, "rate": 1.0, "tokens": "all"},
    TokenCutoffOptions: {**ON_EMBEDDINGS, "rate": 0.15, "tokens": "all"},
    FeatureCutoffOptions: {**ON_EMBEDDINGS, "rate": 0.2},
    EmbeddingDropoutOptions: {**ON_EMBEDDINGS, "rate": 0.2, "draw": "each"},
}
"""ConSERT's own reading of each augmenter, which docs/methods/consert.md states."""


@pytest.mark.parametrize("options", DEFAULTS, ids=lambda each: each.__name__)
def test_defaults(options: type[AugmenterOptions]) -> None:
    assert options().model_dump() == DEFAULTS[options]


BASE = {
    "train.batch_size": 96,
    "train.lr": 5e-7,
    "train.warmup": 0.1,
    "train.epochs": 10,
    "train.eval_steps": 200,
    "train.patience": 10,
    "train.seed": 1,
    "model.max_length": 64,
    "model.dropout": 0.0,
    "aug.feature-cutoff.rate": 0.2,
    "aug.feature-cutoff.views": ("anchor",),
    "aug.token-shuffle.views": ("positive",),
    "loss.infonce.temperature": 0.1,
    "loss.infonce.directions": "both",
    "loss.infonce.in_batch": "both",
}
LARGE = {"train.lr": 5e-7, "train.epochs": 25, "train.eval_steps": 100, "model.dropout": None}


class TestConsert(RecipeSuite):
    recipe = "consert"
    settings = Path(__file__).parent / "settings" / "consert.toml"
    expects = {
        "bert-base": BASE,
        "roberta-base": BASE,
        "bert-large": LARGE,
        "roberta-large": LARGE,
        "starter": {"train.lr": 1e-4, "train.epochs": 1, "model.dropout": 0.0},
    }

    def test_the_large_encoders_shuffle_alone(self) -> None:
        for encoder in ("bert-large", "roberta-large"):
            found = [(each.use, each.options) for each in self.resolved(encoder).of("aug")]
            assert [use for use, _ in found] == ["token-shuffle"]

    def test_nothing_stands_behind_the_mean(self) -> None:
        assert [each.use for each in self.resolved("bert-base").of("pool")] == ["mean"]
