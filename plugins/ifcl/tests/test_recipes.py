"""The kit over IFCL's recipes."""

from __future__ import annotations

from pathlib import Path

from cse_testkit import RecipeSuite

TESTS = Path(__file__).parent
SETTINGS = {
    "train.batch_size": 64,
    "train.epochs": 1,
    "train.eval_steps": 151,
    "model.freeze_embeddings": True,
    "inference.pool": "mean",
    "loss.twins.reduction": "mean",
    "aug.fusion.at": "input_embeddings",
    "aug.fusion.projection": "none",
}


class TestIfcl(RecipeSuite):
    recipe = "ifcl"
    settings = TESTS / "settings" / "ifcl.toml"
    expects = {
        "bert-base": {
            **SETTINGS,
            "train.lr": 3e-5,
            "aug.fusion.model": "stefan-it/albert-large-german-cased",
            "aug.fusion.projection": "random",
        },
        "bert-large": {
            **SETTINGS,
            "train.lr": 1e-5,
            "aug.fusion.model": "stefan-it/albert-large-german-cased",
        },
        "roberta-base": {**SETTINGS, "aug.fusion.model": None},
        "starter": {**SETTINGS, "train.lr": 1e-4, "aug.fusion.model": None},
    }


def test_the_parts_defaults_are_the_recipes() -> None:
    """A part alone is as in the recipe, where no second model is named."""
    parts = [
        part for part in TestIfcl().resolved("starter").parts if part.distribution == "cse-ifcl"
    ]
    assert {part.use for part in parts} == {"fusion", "hippocampus", "twins"}
    for part in parts:
        assert part.options == type(part.options)(), part.path


class TestIfclForChinese(RecipeSuite):
    recipe = "ifcl-zh"
    settings = TESTS / "settings" / "ifcl-zh.toml"
    expects = {
        "bert-base": {**SETTINGS, "aug.fusion.model": "denpa92/bert-base-cantonese"},
        "bert-large": {
            **SETTINGS,
            "train.lr": 1e-5,
            "aug.fusion.model": "denpa92/bert-base-cantonese",
            "aug.fusion.projection": "random",
        },
        "starter": {**SETTINGS, "train.lr": 1e-4, "aug.fusion.model": None},
    }
