"""The kit over IFCL's recipes."""

from __future__ import annotations

from pathlib import Path

from cse_testkit import recipe_suites

SUITES = recipe_suites("cse-ifcl", Path(__file__).parent / "settings")
globals().update(SUITES)


def test_the_parts_defaults_are_the_recipes() -> None:
    """A part alone is as in the recipe, where no second model is named."""
    recipe = SUITES["TestRecipeIfcl"]().resolved("starter")
    parts = [part for part in recipe.parts if part.distribution == "cse-ifcl"]
    assert {part.use for part in parts} == {"fusion", "hippocampus", "twins"}
    for part in parts:
        assert part.options == type(part.options)(), part.path
