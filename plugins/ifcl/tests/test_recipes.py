"""The kit over IFCL's recipes."""

from __future__ import annotations

from pathlib import Path

from cse_testkit import RecipeSuite

TESTS = Path(__file__).parent


class TestIfcl(RecipeSuite):
    recipe = "ifcl"
    settings = TESTS / "settings" / "ifcl.toml"


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
