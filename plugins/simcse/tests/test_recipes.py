"""The kit over SimCSE's recipes."""

from __future__ import annotations

from pathlib import Path

from cse_testkit import RecipeSuite

SETTINGS = Path(__file__).parent / "settings"


class TestSimcse(RecipeSuite):
    recipe = "simcse"
    settings = SETTINGS / "simcse.toml"
    # Table D.1 of the paper and its scripts: batch size and learning rate by encoder.
    expects = {
        "bert-base": {
            "train.batch_size": 64,
            "train.lr": 3e-5,
            "train.schedule": "linear",
            "train.warmup": 0,
            "train.weight_decay": 0.0,
            "train.clip": 1.0,
            "train.epochs": 1,
            "train.eval_steps": 125,
            "train.seed": 42,
            "model.max_length": 32,
            "loss.infonce.temperature": 0.05,
            "pool.mlp.keep": "train",
        },
        "bert-large": {"train.batch_size": 64, "train.lr": 1e-5},
        "roberta-base": {"train.batch_size": 512, "train.lr": 1e-5},
        "roberta-large": {"train.batch_size": 512, "train.lr": 3e-5},
    }


class TestSupervised(RecipeSuite):
    recipe = "simcse-supervised"
    settings = SETTINGS / "simcse-supervised.toml"
    expects = {
        "bert-base": {
            "train.batch_size": 512,
            "train.lr": 5e-5,
            "train.epochs": 3,
            "pool.mlp.keep": "always",
            "negatives.hard-negatives.weight": 0.0,
        },
        "bert-large": {"train.batch_size": 512, "train.lr": 1e-5},
        "roberta-base": {"train.batch_size": 512, "train.lr": 5e-5},
        "roberta-large": {"train.batch_size": 512, "train.lr": 1e-5},
    }
