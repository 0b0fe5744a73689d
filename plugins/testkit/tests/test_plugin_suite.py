"""The suites of plugins and recipes find what a distribution breaks."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cse_testkit import PluginSuite, RecipeSuite, failures
from cse_testkit.recipe_settings import skeleton

from cse_cli.plugins.manager import load_plugins
from cse_core.registry.registry import Registry
from tests.fixtures.distributions import Distributions, distributions, loss, plugin

__all__ = ["distributions"]
NEEDS = ("cse-toolkit>=0.1,<0.2",)


def failed(
    made: Distributions,
    monkeypatch: pytest.MonkeyPatch,
    name: str = "cse-made",
    tests: list[str] | None = None,
) -> dict[str, str]:
    """Return what the suite finds in a made distribution, seen by new processes too."""
    infos = load_plugins(environ={}).infos
    monkeypatch.setattr("cse_testkit.plugins._loaded", lambda: infos)
    path = [str(made.folder), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    return failures(type("Suite", (PluginSuite,), {"distribution": name}), tests)


def sound(made: Distributions) -> Path:
    record = loss("margin").replace("m.n:C", "cse_core.builtins.infonce:Infonce")
    made.add("cse-made", plugin(record), requires=NEEDS)
    (made.folder / "cse_made" / "py.typed").touch()
    return made.folder / "cse_made" / "plugin.py"


def test_a_sound_plugin_passes(
    distributions: Distributions, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound(distributions)
    assert failed(distributions, monkeypatch) == {}


@pytest.mark.parametrize(
    ("old", "new", "test", "text"),
    [
        ("from cse_core.records", "import torch\nfrom cse_core.records",
         "test_its_plugin_module_imports_nothing_heavy", "imports torch"),
        ("infonce:Infonce", "infonce:Nobody", "test_its_factories_are_there", "has no Nobody"),
        ("infonce:Infonce", "heads:Mlp",
         "test_its_parts_keep_their_records_promises", "parts.Loss"),
        ('name="margin"', 'name="Margin Loss"', "test_it_is_active", "broken"),
        ("from cse_core.records", "import cse_simcse\nfrom cse_core.records",
         "test_it_imports_no_other_plugin", "imports cse_simcse"),
        ("return [", "raise ValueError('no')\n    return [", "test_it_is_active", "ValueError"),
    ],
)  # fmt: skip
def test_a_fault_of_a_plugin_is_found(
    distributions: Distributions,
    monkeypatch: pytest.MonkeyPatch,
    old: str,
    new: str,
    test: str,
    text: str,
) -> None:
    path = sound(distributions)
    distributions.add("cse-simcse", plugin(loss("other")), entry_point="other")
    source = path.read_text(encoding="utf-8")
    assert old in source
    path.write_text(source.replace(old, new, 1), encoding="utf-8")
    found = failed(distributions, monkeypatch, tests=[test])
    assert test in found
    assert text in found[test]


def test_a_plugin_without_a_version_of_the_toolkit_is_found(
    distributions: Distributions, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributions.add("cse-made", plugin(loss("margin")))
    found = failed(distributions, monkeypatch)
    assert "does not require cse-toolkit" in found["test_it_says_which_toolkit_it_needs"]
    assert "no py.typed" in found["test_its_packages_are_typed"]
    assert "cannot be imported" in found["test_its_factories_are_there"]


def test_a_distribution_without_plugins_is_found(
    distributions: Distributions, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = failed(distributions, monkeypatch, "cse-nobody")
    assert "brings no entry point" in found["test_it_is_active"]


RECIPE = """
[[pool]]
use = "cls"

[[loss]]
use = "infonce"
temperature = {temperature}

[train]
lr = 1e-5
"""


def recipe_failures(
    made: Distributions,
    text: str,
    expects: dict[str, dict[str, object]],
    table: Callable[[str], str] | None = None,
) -> dict[str, str]:
    """Return what the suite finds; ``table`` makes the file of settings of the printed one."""
    record = 'RecipeSpec(name="mine", summary="A recipe", path="cse_made:mine.toml")'
    made.add("cse-made", plugin(record, hook="cse_recipes"), requires=NEEDS)
    (made.folder / "cse_made" / "mine.toml").write_text(text, encoding="utf-8")
    registry = Registry.from_plugins(load_plugins(environ={}).infos)
    values: dict[str, Any] = {"recipe": "mine", "registry": registry, "expects": expects}
    if table is not None:
        values["settings"] = made.folder / "settings.toml"
        values["settings"].write_text(table(skeleton("mine", registry)), encoding="utf-8")
    return failures(type("Suite", (RecipeSuite,), values))


def test_a_sound_recipe_passes(distributions: Distributions) -> None:
    expects = {"bert-base": {"train.lr": 1e-5, "loss.infonce.temperature": 0.05}}
    assert recipe_failures(distributions, RECIPE.format(temperature=0.05), expects) == {}


def test_another_setting_than_the_paper_gives_is_found(distributions: Distributions) -> None:
    expects = {"roberta-large": {"train.lr": 3e-5}, "bert-base": {"pool.mlp.keep": "train"}}
    found = recipe_failures(distributions, RECIPE.format(temperature=0.05), expects)
    assert list(found) == ["test_it_has_the_expected_settings"]
    assert "train.lr is 1e-05, not 3e-05" in found["test_it_has_the_expected_settings"]


def test_a_recipe_that_is_refused_is_found(distributions: Distributions) -> None:
    found = recipe_failures(distributions, RECIPE.format(temperature=-1), {})
    assert list(found) == ["test_it_resolves_for_every_encoder"]
    assert "loss.infonce.temperature" in found["test_it_resolves_for_every_encoder"]


def sourced(table: str) -> str:
    return table.replace('""]', '"Table 1"]')


def test_a_whole_table_of_settings_passes(distributions: Distributions) -> None:
    assert recipe_failures(distributions, RECIPE.format(temperature=0.05), {}, sourced) == {}


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('temperature" = [0.05', 'temperature" = [0.07', "temperature: 0.05, the table has 0.07"),
        ('"train.clip" = [1.0, "Table 1"]\n', "", "train.clip: 1.0 is not in the table"),
        ('"train.clip" =', '"aug.fgsm" =', "aug.fgsm: the table has 1.0, the recipe has none"),
        ('"train.clip" = [1.0, "Table 1"]', '"train.clip" = [1.0, " "]', "not [value, source]"),
        ("branch online", "branch ema", "views.anchor: 'anchor, column text, branch online'"),
    ],
)
def test_a_table_that_says_something_else_is_found(
    distributions: Distributions, old: str, new: str, line: str
) -> None:
    def changed(table: str) -> str:
        assert old in sourced(table)
        return sourced(table).replace(old, new)

    found = recipe_failures(distributions, RECIPE.format(temperature=0.05), {}, changed)
    assert list(found) == ["test_it_is_what_its_table_of_settings_says"]
    assert line in found["test_it_is_what_its_table_of_settings_says"]
