"""The kit over SNCSE's distribution, parts and recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from cse_testkit import AugmenterSuite, LossSuite, PluginSuite, PoolerSuite, RecipeSuite
from torch import Tensor

from cse_core.types import Batch, Negatives, Positives, StepContext


class TestPlugin(PluginSuite):
    distribution = "cse-sncse"


class TestNegation(AugmenterSuite):
    part = ("aug", "negation")


class TestNegationOfAColumn(AugmenterSuite):
    part = ("aug", "negation")
    options = {"method": "column", "column": "negated"}


class TestNegationOfPositives(AugmenterSuite):
    part = ("aug", "negation")
    options = {"views": ["positive"]}


class TestMaskPrompt(PoolerSuite):
    part = ("pool", "mask-prompt")


class TestMaskPromptAtTheFront(PoolerSuite):
    part = ("pool", "mask-prompt")
    options = {
        "anchor": "[MASK] is what the sentence [X] says",
        "positive": "[MASK] is what [X] says",
        "full_stop": False,
    }


class TestSncse(RecipeSuite):
    recipe = "sncse"
    settings = Path(__file__).parent / "settings" / "sncse.toml"
    # The paper's settings and its scripts: batch size, learning rate and lambda by encoder.
    expects = {
        "bert-base": {
            "train.batch_size": 256,
            "train.lr": 1e-5,
            "train.schedule": "linear",
            "train.warmup": 0,
            "train.weight_decay": 0.0,
            "train.clip": 1.0,
            "train.epochs": 1,
            "train.eval_steps": 125,
            "model.max_length": 32,
            "params.margin_weight": 1e-3,
            "loss.infonce.temperature": 0.05,
            "loss.bml.alpha": 0.1,
            "loss.bml.beta": 0.3,
            "pool.mlp.keep": "train",
            "aug.negation.method": "rules",
            "pool.mask-prompt.leading_space": True,
        },
        "bert-large": {
            "train.batch_size": 128,
            "train.lr": 5e-6,
            "params.margin_weight": 1e-3,
        },
        "roberta-base": {
            "train.batch_size": 256,
            "train.lr": 1e-5,
            "params.margin_weight": 5e-4,
        },
        "roberta-large": {
            "train.batch_size": 128,
            "train.lr": 5e-6,
            "params.margin_weight": 5e-4,
        },
        "starter": {
            "train.batch_size": 64,
            "train.lr": 1e-4,
            "params.margin_weight": 1e-3,
            "inference.pool": "mean",
        },
    }

    def test_the_weight_of_the_margin_is_the_parameter(self) -> None:
        for encoder, weight in (("bert-large", 1e-3), ("roberta-base", 5e-4)):
            composition = self.resolved(encoder)
            bml = next(each for each in composition.parts if each.path == "loss.bml")
            assert bml.options.weight.at(0, 10) == weight  # type: ignore[attr-defined]


class TestBml(LossSuite):
    """The loss in loops: each anchor with its own soft negative and positives."""

    part = ("loss", "bml")
    options = {"alpha": 0.2, "beta": 0.25, "weight": 1.0}

    def slow(
        self,
        batch: Batch,
        targets: Positives,
        negatives: Negatives,
        ctx: StepContext,
        options: Any,
    ) -> float:
        def cosine(one: Tensor, other: Tensor) -> float:
            return float(torch.cosine_similarity(one, other, dim=0))

        soft = batch.views[options.view][batch.level]
        total = 0.0
        for a, anchor in enumerate(batch.anchors):
            (own,) = [
                n
                for n in range(len(soft))
                if soft.owner[n] == batch.owner[a] and soft.slot[n] == batch.slot[a]
            ]
            terms = []
            for positive in targets.vectors[a]:
                gap = cosine(anchor, soft.vectors[own]) - cosine(anchor, positive)
                terms.append(max(0.0, gap + options.alpha) + max(0.0, -gap - options.beta))
            total += sum(terms) / len(terms)
        return total / len(batch.anchors)
