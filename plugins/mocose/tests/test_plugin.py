"""The kit over MoCoSE's distribution and parts."""

from __future__ import annotations

from cse_testkit import AugmenterSuite, PluginSuite, PoolerSuite, StoreSuite


class TestPlugin(PluginSuite):
    distribution = "cse-mocose"


class TestFgsm(AugmenterSuite):
    part = ("aug", "fgsm")


class TestFgsmAsPublished(AugmenterSuite):
    part = ("aug", "fgsm")
    options = {
        "gradient": "previous",
        "relative": False,
        "epsilon": 0.01,
        "views": ["anchor", "positive"],
    }


class TestTokenDrop(AugmenterSuite):
    part = ("aug", "token-drop")
    options = {"rate": 0.3}


class TestTokenDropOfOwnTokens(AugmenterSuite):
    part = ("aug", "token-drop")
    options = {"places": None, "views": ["anchor", "positive"]}


class TestProjector(PoolerSuite):
    part = ("pool", "projector")


class TestDeepProjector(PoolerSuite):
    part = ("pool", "projector")
    options = {"layers": 3, "dimension": 12}


class TestNoProjector(PoolerSuite):
    part = ("pool", "projector")
    options = {"layers": 0}


class TestPredictor(PoolerSuite):
    part = ("pool", "predictor")


class TestDeepPredictor(PoolerSuite):
    part = ("pool", "predictor")
    options = {"layers": 3, "branches": "all"}


class TestQueue(StoreSuite):
    part = ("negatives", "queue")
    options = {"size": 10, "first_fill": 3}


class TestQueueOfOneBranch(StoreSuite):
    part = ("negatives", "queue")
    options = {"branch": None, "size": 6, "first_fill": 0}


class TestQueueAsPublished(StoreSuite):
    part = ("negatives", "queue")
    options = {"size": 8, "first_fill": 2, "growth": "official"}


class TestQueueOfLatestKeys(StoreSuite):
    part = ("negatives", "queue")
    options = {"size": 10, "first_fill": 3, "update": "latest"}


class TestQueueOfOldestKeys(StoreSuite):
    part = ("negatives", "queue")
    options = {"size": 6, "first_fill": 3, "update": "oldest"}
