"""The kit over InfoCSE's distribution, parts and recipes."""

from __future__ import annotations

from typing import Any

from cse_testkit import AugmenterSuite, MinerSuite, PluginSuite, PoolerSuite, RecipeSuite

DOCUMENTS = ("document", "title")
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


class TestPlugin(PluginSuite):
    distribution = "cse-infocse"


class TestSentences(PoolerSuite):
    part = ("pool", "sentences")


class TestSpanMask(AugmenterSuite):
    part = ("aug", "span-mask")


class TestIdc(MinerSuite):
    part = ("positives", "idc")
    columns = DOCUMENTS


class TestIdcKmeans(MinerSuite):
    part = ("positives", "idc-kmeans")
    options = {"clusters": 2}
    columns = DOCUMENTS


class TestIdcLabels(MinerSuite):
    part = ("positives", "idc-labels")
    columns = DOCUMENTS


class TestLabels(MinerSuite):
    part = ("positives", "labels")
    columns = DOCUMENTS


class TestNeighbour(MinerSuite):
    part = ("positives", "neighbour")
    columns = DOCUMENTS


class TestInverseCloze(MinerSuite):
    part = ("positives", "inverse-cloze")
    columns = DOCUMENTS


class TestPrecedingContext(MinerSuite):
    part = ("positives", "preceding-context")
    options = {"context": "mean"}
    columns = DOCUMENTS


class TestSpan(MinerSuite):
    part = ("positives", "span")
    options = {"combine": "mean"}
    columns = DOCUMENTS


class TestInfocse(RecipeSuite):
    recipe = "infocse"
    expects = {
        "bert-base": {**PAPER, "model.max_length": 32, "positives.idc.neighbours": 1},
        "starter": {"train.batch_size": 256, "positives.idc.pairs": 30_000},
    }


class TestFinetune(RecipeSuite):
    recipe = "infocse-finetune"
    expects = {
        "bert-base": {
            **TUNED,
            "positives.labels.batch_size": 64,
            "positives.labels.epochs": 20,
            "positives.labels.patience": "2 epochs",
        }
    }


class TestPlus(RecipeSuite):
    recipe = "infocse-plus"
    expects = {"bert-base": {**TUNED, "train.batch_size": 3200, "train.patience": "20000 steps"}}


class TestNeighbourRecipe(RecipeSuite):
    recipe = "neighbour"
    expects = {"bert-base": PAPER}


class TestInverseClozeRecipe(RecipeSuite):
    recipe = "inverse-cloze"
    # Four pairs in order are of one document, whose sentences are no negatives of each other.
    sets = ("train.batch_size=8",)


class TestInverseClozeSettings(RecipeSuite):
    recipe = "inverse-cloze"
    expects = {"bert-base": PAPER}
    test_it_trains_on_a_tiny_encoder = None


class TestPrecedingContextRecipe(RecipeSuite):
    recipe = "preceding-context"
    expects = {"bert-base": PAPER}


class TestSpanRecipe(RecipeSuite):
    recipe = "span"
    expects = {"bert-base": PAPER}


class TestMirrorBert(RecipeSuite):
    recipe = "mirror-bert"
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
