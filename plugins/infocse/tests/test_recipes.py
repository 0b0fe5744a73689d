"""The settings of InfoCSE's recipes, whole, each with its source; nothing is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cse_testkit import RecipeSuite
from cse_testkit.promises import NotMeant

SETTINGS = Path(__file__).parent / "settings"
PAPER: dict[str, Any] = {
    "train.batch_size": 3200,
    "train.lr": 2e-5,
    "train.betas": (0.9, 0.999),
    "train.eps": 1e-8,
    "train.seed": 42,
    "train.max_steps": 200_000,
    "train.patience": "20000 steps",
    "loss.infonce.same_document": "mask",
}
TUNED = {
    "train.lr": 2e-5,
    "pool.sentences.length": 32,
    "inference.slice": True,
}


class Settings(RecipeSuite):
    def promise_it_trains(self) -> None:
        """Its parts train in test_plugin, on documents that give each of them pairs."""
        raise NotMeant("the tiny corpus has no documents to mine")


class TestInfocse(Settings):
    recipe = "infocse"
    settings = SETTINGS / "infocse.toml"
    expects = {
        "bert-base": {**PAPER, "model.max_length": 32, "positives.idc.neighbours": 1},
        "starter": {"train.batch_size": 256, "positives.idc.pairs": 30_000},
    }


class TestFinetune(Settings):
    recipe = "infocse-finetune"
    settings = SETTINGS / "infocse-finetune.toml"
    expects = {
        "bert-base": {
            **TUNED,
            "positives.labels.batch_size": 64,
            "positives.labels.epochs": 20,
            "positives.labels.patience": "2 epochs",
        }
    }


class TestPlus(Settings):
    recipe = "infocse-plus"
    settings = SETTINGS / "infocse-plus.toml"
    expects = {"bert-base": {**TUNED, "train.batch_size": 3200, "train.patience": "20000 steps"}}


class TestNeighbour(Settings):
    recipe = "neighbour"
    settings = SETTINGS / "neighbour.toml"
    expects = {"bert-base": PAPER}


class TestInverseCloze(Settings):
    recipe = "inverse-cloze"
    settings = SETTINGS / "inverse-cloze.toml"
    expects = {"bert-base": PAPER}


class TestPrecedingContext(Settings):
    recipe = "preceding-context"
    settings = SETTINGS / "preceding-context.toml"
    expects = {"bert-base": PAPER}


class TestSpan(Settings):
    recipe = "span"
    settings = SETTINGS / "span.toml"
    expects = {"bert-base": PAPER}


class TestMirrorBert(Settings):
    recipe = "mirror-bert"
    settings = SETTINGS / "mirror-bert.toml"
    # mirror_scripts/mirror_sentence_bert.sh
    expects = {
        "bert-base": {
            "train.batch_size": 200,
            "train.lr": 2e-5,
            "model.max_length": 50,
            "loss.infonce.temperature": 0.04,
            "aug.span-mask.characters": 5,
        }
    }
