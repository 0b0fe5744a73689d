"""The suite of recipes finds what a recipe breaks."""

import json
from pathlib import Path
from typing import Any

from cse_testkit import RecipeSuite, failures
from cse_testkit.checking import of_record
from cse_testkit.recipes import ENCODERS, OF_THE_RUN, read_settings, settings_of

from cse_core.registry.manager import load_plugins
from cse_core.registry.registry import Registry
from cse_engine.compose.compose import resolve
from tests.fixtures.distributions import Distributions, plugin

NEEDS = ("cse-toolkit>=0.1,<0.2",)


RECIPE = """
[[pool]]
use = "cls"

[[loss]]
use = "infonce"
temperature = {temperature}

[train]
lr = 1e-5
"""


TABLE = """
[bert-base]
{rows}
"""


def recipe_failures(made: Distributions, text: str, rows: str | None = None) -> str:
    """Return what the suite finds; ``rows`` are those of a table of settings."""
    record = 'RecipeSpec(name="mine", summary="A recipe", path="cse_made:mine.toml")'
    if not (made.folder / "cse_made").exists():
        made.with_defaults()
        made.add("cse-made", plugin(record, hook="cse_recipes"), requires=NEEDS)
    (made.folder / "cse_made" / "mine.toml").write_text(text, encoding="utf-8")
    registry = Registry.from_plugins(load_plugins().infos)
    values: dict[str, Any] = {"recipe": "mine", "registry": registry}
    if rows is not None:
        values["settings"] = made.folder / "settings.toml"
        values["settings"].write_text(TABLE.format(rows=rows), encoding="utf-8")
    return "; ".join(f"{n}: {d}" for n, d in failures(type("S", (RecipeSuite,), values)).items())


def rows_of(made: Distributions) -> str:
    """Return a whole table of the recipe's settings."""
    recipe_failures(made, RECIPE.format(temperature=0.05))
    registry = Registry.from_plugins(load_plugins().infos)
    facts = ENCODERS["bert-base"]
    found = settings_of(resolve(registry, recipe="mine", model=facts.model, facts=facts))
    rows = {path: value for path, value in found.items() if path not in OF_THE_RUN}
    return "\n".join(f'"{path}" = [{json.dumps(value)}, "Table 1"]' for path, value in rows.items())


def test_what_a_recipe_breaks_is_found(distributions: Distributions) -> None:
    found = recipe_failures(distributions, RECIPE.format(temperature=-1))
    assert found.startswith("it_resolves_for_every_encoder: loss.infonce.temperature")


def test_a_recipe_that_another_package_has_too_is_asked(distributions: Distributions) -> None:
    record = 'RecipeSpec(name="mine", summary="A recipe", path="cse_other:mine.toml")'
    assert recipe_failures(distributions, RECIPE.format(temperature=0.05)) == ""
    distributions.add("cse-other", plugin(record, hook="cse_recipes"), requires=NEEDS)
    recipe = RECIPE.format(temperature=0.07)
    (distributions.folder / "cse_other" / "mine.toml").write_text(recipe, encoding="utf-8")
    infos = load_plugins().infos
    info = next(info for info in infos if info.distribution == "cse-other")
    asked = list(of_record(info.parts[0], info, Registry.from_plugins(infos)))
    assert {each.name: each.detail for each in asked if each.status == "broken"} == {}


def test_sizes_above_the_tiny_encoder_and_what_a_real_run_refuses(
    distributions: Distributions,
) -> None:
    recipe = RECIPE.format(temperature=0.05)
    sizes = recipe.replace("[train]", "dimensions = [768, 256, 64]\n[train]")
    assert recipe_failures(distributions, sizes) == ""
    found = recipe_failures(distributions, recipe + 'select = "news.dev.spearman"\n')
    assert found.startswith("a_real_run_takes_it: cse train refuses it: train.select: is not a dev")


def test_a_table_of_settings_is_compared_whole(distributions: Distributions) -> None:
    recipe, rows = RECIPE.format(temperature=0.05), rows_of(distributions)
    assert recipe_failures(distributions, recipe, rows) == ""
    for old, new, line in (
        ('temperature" = [0.05', 'temperature" = [0.07', "temperature: 0.05, the table has 0.07"),
        ('"train.clip" = [1.0, "Table 1"]\n', "", "train.clip: 1.0, the table has 'nothing'"),
        ('"train.clip" =', '"aug.fgsm" =', "aug.fgsm: 'nothing', the table has 1.0"),
        ('clip" = [1.0, "Table 1"]', 'clip" = [1.0, " "]', "not [value, source]"),
        ("branch online", "branch ema", "views.anchor: 'anchor, column text, branch online'"),
    ):
        assert old in rows
        found = recipe_failures(distributions, recipe, rows.replace(old, new))
        assert found.startswith("it_has_the_expected_settings: ") and line in found, found


def test_a_table_lies_over_the_one_that_it_extends(tmp_path: Path) -> None:
    tables = {
        "plain": """
            [bert-base]
            "aug.mask" = ["mask", "Table 1"]
            "train.lr" = [1, "Table 1"]
            "train.clip" = [1, "Table 1"]
            [bert-large]
            "aug.mask.rate" = [2, "Table 1"]
            "train.lr" = [2, "Table 1"]
            "train.clip" = [2, "Table 1"]
        """,
        "other": """
            extends = "plain"
            [bert-base]
            "aug.mask" = ["absent", "Table 2"]
            "train.lr" = [3, "Table 2"]
            [starter]
            "train.clip" = [4, "Table 2"]
        """,
    }
    for name, text in tables.items():
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    assert read_settings(tmp_path / "other.toml") == {
        "bert-base": {"train.lr": 3, "train.clip": 1},
        "bert-large": {"train.lr": 3, "train.clip": 2},
        "starter": {"train.lr": 3, "train.clip": 4},
    }
