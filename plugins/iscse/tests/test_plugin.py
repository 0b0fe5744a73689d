"""The kit over IS-CSE's distribution, parts and recipes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cse_testkit import MinerSuite, PluginSuite, RecipeSuite, installed_registry

from cse_core.records import Kind

SETTINGS = Path(__file__).parent / "settings"
SHORT = {"size": 8, "k": 3}
"""A buffer that is full after two of the kit's batches."""
CLUSTERS = {"size": 8, "clusters": 3}
WRITTEN = {
    "train.schedule": "linear",
    "train.warmup": 0,
    "train.weight_decay": 0.0,
    "train.clip": 1.0,
    "train.epochs": 1,
    "train.eval_steps": 125,
    "train.seed": 42,
    "model.max_length": 32,
    "pool.mlp.keep": "train",
    "positives.knn-smoothing.size": 1024,
    "positives.knn-smoothing.k": 16,
    "positives.knn-smoothing.beta": 2,
    "positives.knn-smoothing.start": "full",
    "positives.knn-smoothing.exclude": "rank",
    "loss.infonce.temperature": 0.05,
    "loss.smoothed.temperature": 0.05,
    "loss.smoothed.target": "knn-smoothing",
}


class TestPlugin(PluginSuite):
    distribution = "cse-iscse"


class TestKnnSmoothing(MinerSuite):
    part = ("positives", "knn-smoothing")
    options = SHORT
    variants = (
        {"start": "at-once", "exclude": "row"},
        {**SHORT, "exclude": "batch"},
        {**SHORT, "view": "identical"},
    )


class TestKmeansSmoothing(MinerSuite):
    part = ("positives", "kmeans-smoothing")
    options = CLUSTERS
    variants = ({"clusters": 3, "start": "at-once", "iterations": 2, "gamma": 0.2},)


def alpha(text: float | str) -> dict[str, Any]:
    return {"loss.smoothed.weight": text}


class TestIscse(RecipeSuite):
    recipe = "is-cse"
    settings = SETTINGS / "is-cse.toml"
    expects = {
        "bert-base": {**WRITTEN, **alpha(0.1), "train.batch_size": 64, "train.lr": 3e-5},
        "bert-large": {
            **WRITTEN,
            **alpha("quarter-cosine(0.005,0.05)"),
            "train.batch_size": 64,
            "train.lr": 1e-5,
        },
        "roberta-base": {**WRITTEN, **alpha(0.1), "train.batch_size": 512, "train.lr": 1e-5},
        "roberta-large": {
            **WRITTEN,
            **alpha("quarter-cosine(0.005,0.05)"),
            "train.batch_size": 512,
            "train.lr": 3e-5,
        },
        "starter": {**WRITTEN, "train.lr": 3e-5, "inference.pool": None},
    }


class TestIscseSmoothing(RecipeSuite):
    """With a buffer that is full within the steps of the suite."""

    recipe = "is-cse"
    sets = ("positives.knn-smoothing.size=8", "positives.knn-smoothing.k=3")


def needs(*parts: tuple[Kind, str]) -> None:
    """Skip where a part that the recipe names is not installed."""
    for kind, name in parts:
        if not installed_registry().has(kind, name):
            pytest.skip(f"no installed plugin brings {kind} {name}")


WRITTEN_OVER_ANOTHER = {
    name: value for name, value in WRITTEN.items() if name.startswith("loss.smoothed.")
}


class OverAnother(RecipeSuite):
    """What IS-CSE adds is the same over every recipe."""

    sets = ("positives.knn-smoothing.size=8", "positives.knn-smoothing.k=3")
    expects = {
        encoder: {**WRITTEN_OVER_ANOTHER, **alpha(weight)}
        for encoder, weight in {
            "bert-base": 0.1,
            "bert-large": "quarter-cosine(0.005,0.05)",
            "roberta-base": 0.1,
            "roberta-large": "quarter-cosine(0.005,0.05)",
        }.items()
    }


class TestIscseDclr(OverAnother):
    recipe = "is-cse-dclr"
    expects = {
        encoder: {
            **values,
            "loss.dclr.variant": "published",
            "negatives.noise.objective": "batch",
            "negatives.instance-weights.view": "positive",
            "branch.frozen.mode": "train",
        }
        for encoder, values in OverAnother.expects.items()
    }

    @pytest.fixture(autouse=True)
    def _needs_its_parts(self) -> None:
        needs(("negatives", "noise"), ("negatives", "instance-weights"), ("loss", "dclr"))


class TestIscseCards(OverAnother):
    recipe = "is-cse-cards"

    @pytest.fixture(autouse=True)
    def _needs_its_parts(self) -> None:
        needs(("aug", "case-switch"), ("negatives", "retrieved"))


class TestIscseDclrAsWritten(RecipeSuite):
    """Without the short buffer of the class above."""

    recipe = "is-cse-dclr"
    settings = SETTINGS / "is-cse-dclr.toml"

    @pytest.fixture(autouse=True)
    def _needs_its_parts(self) -> None:
        needs(("negatives", "noise"), ("negatives", "instance-weights"), ("loss", "dclr"))


class TestIscseCardsAsWritten(RecipeSuite):
    """Without the short buffer of the class above."""

    recipe = "is-cse-cards"
    settings = SETTINGS / "is-cse-cards.toml"

    @pytest.fixture(autouse=True)
    def _needs_its_parts(self) -> None:
        needs(("aug", "case-switch"), ("negatives", "retrieved"))
