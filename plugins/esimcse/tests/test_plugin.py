"""The kit over ESimCSE's distribution, parts and recipe."""

from __future__ import annotations

from pathlib import Path

from cse_esimcse.options import MomentumQueueOptions, WordRepetitionOptions
from cse_testkit import AugmenterSuite, PluginSuite, RecipeSuite, StoreSuite


class TestPlugin(PluginSuite):
    distribution = "cse-esimcse"


class TestWordRepetition(AugmenterSuite):
    part = ("aug", "word-repetition")
    variants = (
        {"count": "code", "when": "once", "rate": 0.5},
        {"unit": "word", "rate": 0.5, "cap": None},
    )


class TestMomentumQueue(StoreSuite):
    part = ("negatives", "momentum-queue")
    options = {"size": 10}
    variants = ({"size": 3, "branch": None, "view": "positive"},)


def test_defaults() -> None:
    assert WordRepetitionOptions().model_dump() == {
        "views": None,
        "rate": 0.32,
        "unit": "token",
        "count": "paper",
        "cap": "auto",
        "when": "step",
    }
    assert MomentumQueueOptions().model_dump() == {
        "level": "sentence",
        "view": "anchor",
        "branch": "ema",
        "size": 160,
    }


class TestEsimcse(RecipeSuite):
    recipe = "esimcse"
    settings = Path(__file__).parent / "settings" / "esimcse.toml"
    expects = {
        "bert-base": {
            "train.batch_size": 64,
            "train.lr": 3e-5,
            "train.schedule": "linear",
            "train.warmup": 0,
            "train.epochs": 1,
            "train.eval_steps": 125,
            "model.max_length": 32,
            "model.dropout": None,
            "aug.word-repetition.rate": 0.32,
            "negatives.momentum-queue.size": 160,
            "branch.ema.mode": "eval",
            "branch.ema.copies": "encoder",
            "loss.infonce.temperature": 0.05,
            "pool.mlp.keep": "train",
        },
        "bert-large": {
            "train.lr": 1e-5,
            "aug.word-repetition.rate": 0.32,
            "negatives.momentum-queue.size": 160,
        },
        "roberta-base": {
            "train.batch_size": 64,
            "train.lr": 1e-5,
            "aug.word-repetition.rate": 0.30,
            "negatives.momentum-queue.size": 160,
            "model.dropout": None,
        },
        "roberta-large": {
            "train.lr": 1e-5,
            "aug.word-repetition.rate": 0.28,
            "negatives.momentum-queue.size": 128,
            "model.dropout": 0.15,
        },
        "starter": {"train.lr": 3e-5, "inference.pool": None},
    }
