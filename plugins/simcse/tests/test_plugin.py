"""The kit over SimCSE's distribution, part and recipes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from cse_testkit import LossSuite, PluginSuite, PoolerSuite, RecipeSuite, StoreSuite
from torch import Tensor

from cse_core.types import Batch, Negatives, Positives, StepContext

SETTINGS = Path(__file__).parent / "settings"


class TestPlugin(PluginSuite):
    distribution = "cse-simcse"


class TestHardNegatives(StoreSuite):
    part = ("negatives", "hard-negatives")
    options = {"weight": 0.7}


class TestAvgTop2(PoolerSuite):
    part = ("pool", "avg-top2")


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


class TestInfonceInLoops(LossSuite):
    """Eq. 1 in loops, with masks, weights and several positives as the core defines them."""

    part = ("loss", "infonce")
    options = {"temperature": 0.3}

    def slow(
        self,
        batch: Batch,
        targets: Positives,
        negatives: Negatives,
        ctx: StepContext,
        options: Any,
    ) -> float:
        def exponential(one: Tensor, other: Tensor) -> float:
            cosine = float(torch.cosine_similarity(one, other, dim=0))
            return math.exp(cosine / options.temperature)

        total = 0.0
        for i, anchor in enumerate(batch.anchors):
            mass = 0.0
            for n in range(len(negatives.vectors)):
                if not bool(negatives.mask[i, n]):
                    weight = math.exp(float(negatives.log_weights[i, n]))
                    mass += weight * exponential(anchor, negatives.vectors[n])
            terms = []
            for positive in targets.vectors[i]:
                own = exponential(anchor, positive)
                terms.append(-math.log(own / (own + mass)))
            total += sum(terms) / len(terms)
        return total / len(batch.anchors)
