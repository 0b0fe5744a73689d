"""The kit over CARDS's distribution, parts and recipe."""

from __future__ import annotations

from pathlib import Path

from cse_testkit import AugmenterSuite, PluginSuite, RecipeSuite, StoreSuite


class TestPlugin(PluginSuite):
    distribution = "cse-cards"


class TestCaseSwitch(AugmenterSuite):
    part = ("aug", "case-switch")
    options = {"rate": 0.3}
    variants = ({"variant": "v1"},)


class TestRetrieved(StoreSuite):
    part = ("negatives", "retrieved")
    options = {"knn": 5}
    variants = ({"knn": 7, "take": 3, "refresh": "round", "weight": 0.5},)


class TestCards(RecipeSuite):
    recipe = "cards"
    settings = Path(__file__).parent / "settings" / "cards.toml"
    # The authors' README for RoBERTa; BERT's batch size and learning rate are ours.
    expects = {
        "roberta-base": {
            "train.batch_size": 512,
            "train.lr": 4e-5,
            "negatives.retrieved.knn": 65,
            "negatives.retrieved.take": 1,
            "negatives.retrieved.pool": "mean",
            "negatives.retrieved.refresh": "static",
            "negatives.retrieved.weight": 0.0,
            "aug.case-switch.rate": 0.05,
            "aug.case-switch.variant": "v2",
            "aug.case-switch.views": ("positive",),
            "loss.infonce.temperature": 0.05,
            "model.max_length": 32,
            "inference.pool": None,
        },
        "roberta-large": {
            "train.batch_size": 512,
            "train.lr": 7.5e-6,
            "negatives.retrieved.knn": 9,
            "aug.case-switch.rate": 0.1,
            "aug.case-switch.variant": "v1",
        },
        "bert-base-cased": {"train.batch_size": 64, "aug.case-switch.rate": 0.05},
        "bert-large": {"train.batch_size": 64, "train.lr": 1e-5},
        "starter": {"train.batch_size": 64, "train.lr": 3e-5, "inference.pool": None},
    }

    def test_case_switch_is_there_only_where_it_is_seen(self) -> None:
        """An uncased vocabulary leaves it out, and the plan says so."""
        for encoder, there in (("bert-base-cased", True), ("bert-base", False), ("starter", False)):
            composition = self.resolved(encoder)
            assert bool(composition.of("aug")) == there
            assert any("case-switch is left out" in note for note in composition.notes) != there
