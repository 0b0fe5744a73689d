"""The kit over ConSERT's distribution and parts."""

from __future__ import annotations

from cse_testkit import AugmenterSuite, PluginSuite


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
