"""The recipes beside whole tables of their settings, and the defaults of the parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cse_hicl.options import (
    AveragingOptions,
    EntailmentOptions,
    SameSequenceOptions,
    SegmentsOptions,
)
from cse_testkit import RecipeSuite, installed_registry

from cse_core.options import Options
from cse_core.records import Kind

SETTINGS = Path(__file__).parent / "settings"
"""Every setting of each recipe with its source."""
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


DEFAULTS: dict[type[Options], dict[str, Any]] = {
    SegmentsOptions: {
        "length": 32,
        "aggregate": "weighted",
        "wrap": "segment",
        "join": "after-heads",
    },
    SameSequenceOptions: {"level": "segment", "view": "positive", "most": 16},
    AveragingOptions: {"level": "segment"},
    EntailmentOptions: {
        "level": "segment",
        "sentences": "anchor",
        "negatives": "none",
        "temperature": 0.05,
        "reduction": "mean",
        "same_text": "mask",
    },
}
"""The paper's reading of each part, as far as it has one."""


@pytest.mark.parametrize("options", DEFAULTS, ids=lambda each: each.__name__)
def test_defaults(options: type[Options]) -> None:
    found = options().model_dump()
    assert {name: found[name] for name in DEFAULTS[options]} == DEFAULTS[options]


def needs(*parts: tuple[Kind, str]) -> None:
    """Skip where a part that the recipe names is not installed."""
    for kind, name in parts:
        if not installed_registry().has(kind, name):
            pytest.skip(f"no installed plugin brings {kind} {name}")


def tuned(batch_size: int, lr: float, alpha: float) -> dict[str, Any]:
    return {
        "train.batch_size": batch_size,
        "train.lr": lr,
        "loss.local.weight": alpha,
        "loss.global.weight": 1 - alpha,
    }


def tuned_v2(
    batch_size: int, lr: float, alpha: float, beta: float, margin: float
) -> dict[str, Any]:
    """Return what HiCLv2 over SNCSE has: what alpha and beta leave weighs both of its losses."""
    return {
        "train.batch_size": batch_size,
        "train.lr": lr,
        "loss.local.weight": alpha,
        "loss.entailment.weight": beta,
        "loss.global.weight": 1 - alpha - beta,
        "loss.bml.weight": (1 - alpha - beta) * margin,
    }


class TestHicl(RecipeSuite):
    recipe = "hicl"
    settings = SETTINGS / "hicl.toml"
    # Table 13 of the paper: alpha and learning rate by encoder.
    expects = {
        "bert-base": {**WRITTEN, **tuned(256, 5e-5, 0.15), "pool.mlp.keep": "train"},
        "bert-large": tuned(128, 3e-5, 0.15),
        "roberta-base": tuned(256, 1e-5, 0.05),
        "roberta-large": tuned(128, 5e-6, 0.05),
    }


class TestHiclV2(RecipeSuite):
    recipe = "hicl-v2"
    settings = SETTINGS / "hicl-v2.toml"
    expects = {
        "bert-large": {
            "train.batch_size": 128,
            "train.lr": 5e-6,
            "loss.local.weight": 0.15,
            "loss.entailment.weight": 3e-4,
            "loss.global.weight": 1 - 0.15 - 3e-4,
        },
        "roberta-large": {
            "train.lr": 5e-6,
            "loss.local.weight": 0.05,
            "loss.entailment.weight": 3e-5,
            "loss.global.weight": 1 - 0.05 - 3e-5,
        },
    }


class TestHiclEsimcse(RecipeSuite):
    recipe = "hicl-esimcse"
    settings = SETTINGS / "hicl-esimcse.toml"
    # Learning rates and alpha of HiCL's Table 13; rates, queue and dropout of ESimCSE.
    expects = {
        "bert-base": {
            **WRITTEN,
            **tuned(256, 3e-5, 0.01),
            "aug.word-repetition.rate": 0.32,
            "negatives.momentum-queue.size": 160,
            "negatives.momentum-queue.level": "sentence",
        },
        "bert-large": tuned(128, 5e-6, 0.01),
        "roberta-base": {**tuned(256, 1e-5, 0.01), "aug.word-repetition.rate": 0.30},
        "roberta-large": {
            **tuned(128, 5e-6, 0.01),
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
    settings = SETTINGS / "hicl-sncse.toml"
    expects = {
        "bert-base": {
            **WRITTEN,
            **tuned(256, 1e-5, 0.01),
            "loss.bml.weight": 0.99 * 1e-3,
            "loss.bml.level": "sentence",
        },
        "bert-large": tuned(128, 1e-5, 0.01),
        "roberta-base": {**tuned(256, 1e-5, 0.01), "loss.bml.weight": 0.99 * 5e-4},
        "roberta-large": {**tuned(128, 5e-6, 0.15), "loss.bml.weight": 0.85 * 5e-4},
    }

    @pytest.fixture(autouse=True)
    def _needs_its_parts(self) -> None:
        needs(("aug", "negation"), ("pool", "mask-prompt"), ("loss", "bml"))


class TestHiclV2Sncse(RecipeSuite):
    recipe = "hicl-v2-sncse"
    settings = SETTINGS / "hicl-v2-sncse.toml"
    # Table 14 of the paper: alpha and beta of large encoders, all at 5e-6; base encoders are ours.
    expects = {
        "bert-base": tuned_v2(256, 1e-5, 0.01, 3e-4, 1e-3),
        "bert-large": tuned_v2(128, 5e-6, 0.01, 3e-4, 1e-3),
        "roberta-base": tuned_v2(256, 1e-5, 0.01, 1e-5, 5e-4),
        "roberta-large": tuned_v2(128, 5e-6, 0.15, 1e-5, 5e-4),
    }

    @pytest.fixture(autouse=True)
    def _needs_its_parts(self) -> None:
        needs(("aug", "negation"), ("pool", "mask-prompt"), ("loss", "bml"))
