"""The kit over MoCoSE's recipe."""

from __future__ import annotations

from pathlib import Path

from cse_testkit import RecipeSuite


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
        "bert-large": {"train.batch_size": 32, "train.lr": 1e-5, "pool.projector.dimension": 1024},
        "starter": {"train.lr": 3e-5, "pool.projector.dimension": 256, "inference.pool": None},
    }
