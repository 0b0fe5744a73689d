"""The kit over MoCoSE's distribution, parts and recipe."""

from __future__ import annotations

from pathlib import Path

from cse_testkit import AugmenterSuite, PluginSuite, PoolerSuite, RecipeSuite, StoreSuite


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


class TestMocose(RecipeSuite):
    recipe = "mocose"
    settings = Path(__file__).parent / "settings" / "mocose.toml"
    expects = {
        "bert-base": {
            "train.batch_size": 64,
            "train.lr": 3e-5,
            "train.weight_decay": 1e-6,
            "train.warmup": 0,
            "train.eval_steps": 100,
            "model.max_length": 32,
            "params.dimension": 768,
            "aug.fgsm.epsilon": 5e-9,
            "aug.fgsm.relative": False,
            "aug.fgsm.gradient": "fresh",
            "pool.projector.layers": 1,
            "pool.projector.dimension": 768,
            "pool.predictor.layers": 2,
            "pool.predictor.dimension": 768,
            "pool.predictor.branches": "online",
            "negatives.queue.size": 512,
            "negatives.queue.first_fill": 128,
            "negatives.queue.dimension": 768,
            "loss.infonce.temperature": 0.05,
            "loss.infonce.negatives": "all",
        },
        "bert-large": {"train.batch_size": 32, "train.lr": 1e-5, "params.dimension": 1024},
        "starter": {"train.lr": 3e-5, "params.dimension": 256, "inference.pool": "mean"},
    }
