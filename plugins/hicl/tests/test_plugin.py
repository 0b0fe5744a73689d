"""The kit over HiCL's distribution, parts and recipes."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from cse_testkit import (
    LossSuite,
    MinerSuite,
    PluginSuite,
    PoolerSuite,
    RecipeSuite,
    StoreSuite,
    installed_registry,
)

from cse_core.records import Kind
from cse_core.schedule import Schedule
from cse_core.types import Batch, Negatives, Positives, StepContext

SHORT = {"length": 4}
"""Segments of this length, so that the kit's short texts have several."""
WRITTEN = {
    "train.schedule": "linear",
    "train.warmup": 0,
    "train.weight_decay": 0.0,
    "train.clip": 1.0,
    "train.epochs": 1,
    "train.eval_steps": 125,
    "model.max_length": 512,
    "pool.segments.length": 32,
    "pool.segments.aggregate": "weighted",
    "pool.segments.wrap": "segment",
    "loss.local.level": "segment",
    "loss.local.in_batch": "target",
    "loss.local.same_sentence": "mask",
    "loss.local.temperature": 0.05,
    "loss.global.temperature": 0.05,
    "inference.slice": False,
}


class TestPlugin(PluginSuite):
    distribution = "cse-hicl"


class TestSegments(PoolerSuite):
    part = ("pool", "segments")
    options = SHORT


class TestSegmentsOfWrappedSentences(PoolerSuite):
    part = ("pool", "segments")
    options = {**SHORT, "wrap": "sentence", "aggregate": "mean", "join": "before-heads"}


class TestSameSequence(MinerSuite):
    part = ("positives", "same-sequence")
    sets = ("pool.segments.length=4",)


class TestAveraging(StoreSuite):
    part = ("negatives", "averaging")
    sets = ("pool.segments.length=4",)


class TestEntailment(LossSuite):
    """From each segment to its own sentence among all, in loops."""

    part = ("loss", "entailment")
    sets = ("pool.segments.length=4",)

    def slow(
        self,
        batch: Batch,
        targets: Positives,
        negatives: Negatives,
        ctx: StepContext,
        options: Any,
    ) -> float:
        sentences = batch.views["anchor"]["sentence"]
        total = 0.0
        for anchor, owner in zip(batch.anchors, batch.owner.tolist(), strict=True):
            masses = {}
            for row, other in enumerate(sentences.owner.tolist()):
                cosine = torch.cosine_similarity(anchor, sentences.vectors[row], dim=0)
                masses[other] = math.exp(float(cosine) / options.temperature)
            total -= math.log(masses[owner] / sum(masses.values()))
        return total / len(batch.anchors)


def needs(*parts: tuple[Kind, str]) -> None:
    """Skip where a part that the recipe names is not installed."""
    for kind, name in parts:
        if not installed_registry().has(kind, name):
            pytest.skip(f"no installed plugin brings {kind} {name}")


def constant(value: float) -> Schedule:
    return Schedule("constant", value, value)


def settings(batch_size: int, lr: float, alpha: float) -> dict[str, Any]:
    return {
        "train.batch_size": batch_size,
        "train.lr": lr,
        "loss.local.weight": constant(alpha),
        "loss.global.weight": constant(1 - alpha),
    }


def settings_v2(
    batch_size: int, lr: float, alpha: float, beta: float, margin: float
) -> dict[str, Any]:
    """Return what HiCLv2 over SNCSE has: what alpha and beta leave weighs both of its losses."""
    return {
        "train.batch_size": batch_size,
        "train.lr": lr,
        "loss.local.weight": constant(alpha),
        "loss.entailment.weight": constant(beta),
        "loss.global.weight": constant(1 - alpha - beta),
        "loss.bml.weight": constant((1 - alpha - beta) * margin),
    }


class TestHicl(RecipeSuite):
    recipe = "hicl"
    # Table 13 of the paper: alpha and learning rate by encoder.
    expects = {
        "bert-base": {**WRITTEN, **settings(256, 5e-5, 0.15), "pool.mlp.keep": "train"},
        "bert-large": settings(128, 3e-5, 0.15),
        "roberta-base": settings(256, 1e-5, 0.05),
        "roberta-large": settings(128, 5e-6, 0.05),
    }


class TestHiclV2(RecipeSuite):
    recipe = "hicl-v2"
    expects = {
        "bert-large": {
            "train.batch_size": 128,
            "train.lr": 5e-6,
            "loss.local.weight": constant(0.15),
            "loss.entailment.weight": constant(3e-4),
            "loss.global.weight": constant(1 - 0.15 - 3e-4),
        },
        "roberta-large": {
            "train.lr": 5e-6,
            "loss.local.weight": constant(0.05),
            "loss.entailment.weight": constant(3e-5),
            "loss.global.weight": constant(1 - 0.05 - 3e-5),
        },
    }


class TestHiclEsimcse(RecipeSuite):
    recipe = "hicl-esimcse"
    # Learning rates and alpha of HiCL's Table 13; rates, queue and dropout of ESimCSE.
    expects = {
        "bert-base": {
            **WRITTEN,
            **settings(256, 3e-5, 0.01),
            "aug.word-repetition.rate": 0.32,
            "negatives.momentum-queue.size": 160,
            "negatives.momentum-queue.level": "sentence",
        },
        "bert-large": settings(128, 5e-6, 0.01),
        "roberta-base": {**settings(256, 1e-5, 0.01), "aug.word-repetition.rate": 0.30},
        "roberta-large": {
            **settings(128, 5e-6, 0.01),
            "aug.word-repetition.rate": 0.28,
            "negatives.momentum-queue.size": 128,
            "model.dropout": 0.15,
        },
    }

    @pytest.fixture(autouse=True)
    def _needs_its_parts(self) -> None:
        needs(("aug", "word-repetition"), ("negatives", "momentum-queue"))


class TestHiclSncse(RecipeSuite):
    recipe = "hicl-sncse"
    expects = {
        "bert-base": {
            **WRITTEN,
            **settings(256, 1e-5, 0.01),
            "loss.bml.weight": constant(0.99 * 1e-3),
            "loss.bml.level": "sentence",
        },
        "bert-large": settings(128, 1e-5, 0.01),
        "roberta-base": {**settings(256, 1e-5, 0.01), "loss.bml.weight": constant(0.99 * 5e-4)},
        "roberta-large": {**settings(128, 5e-6, 0.15), "loss.bml.weight": constant(0.85 * 5e-4)},
    }

    @pytest.fixture(autouse=True)
    def _needs_its_parts(self) -> None:
        needs(("aug", "negation"), ("pool", "mask-prompt"), ("loss", "bml"))


class TestHiclV2Sncse(RecipeSuite):
    recipe = "hicl-v2-sncse"
    # Table 14 of the paper: alpha and beta of large encoders, all at 5e-6; base encoders are ours.
    expects = {
        "bert-base": settings_v2(256, 1e-5, 0.01, 3e-4, 1e-3),
        "bert-large": settings_v2(128, 5e-6, 0.01, 3e-4, 1e-3),
        "roberta-base": settings_v2(256, 1e-5, 0.01, 1e-5, 5e-4),
        "roberta-large": settings_v2(128, 5e-6, 0.15, 1e-5, 5e-4),
    }

    @pytest.fixture(autouse=True)
    def _needs_its_parts(self) -> None:
        needs(("aug", "negation"), ("pool", "mask-prompt"), ("loss", "bml"))
