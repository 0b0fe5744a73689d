"""The suites of plugins and recipes find what a distribution breaks."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cse_testkit import PluginSuite, RecipeSuite, failures
from cse_testkit.recipes import ENCODERS, OF_THE_RUN, settings_of

from cse_core.recipes.compose import resolve
from cse_core.registry.manager import load_plugins
from cse_core.registry.registry import Registry
from tests.fixtures.distributions import Distributions, distributions, loss, plugin

__all__ = ["distributions"]
NEEDS = ("cse-toolkit>=0.1,<0.2",)


def failed(
    made: Distributions,
    monkeypatch: pytest.MonkeyPatch,
    name: str = "cse-made",
    tests: Sequence[str] | None = None,
) -> dict[str, str]:
    """Return what the suite finds in a made distribution, seen by new processes too."""
    infos = load_plugins(environ={}).infos
    monkeypatch.setattr("cse_testkit.plugins.installed_plugins", lambda: infos)
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


def test_a_fault_of_a_plugin_is_found(
    distributions: Distributions, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sound(distributions)
    source = path.read_text(encoding="utf-8")
    for old, new, promise, text in (
        ("from cse_core.records", "import torch\nfrom cse_core.records",
         "its_records_import_nothing_heavy", "imports torch"),
        ("infonce:Infonce", "infonce:Nobody", "its_factories_are_there", "has no Nobody"),
        ('name="margin"', 'name="Margin Loss"', "it_is_active", "broken"),
        ("return [", "raise ValueError('no')\n    return [", "it_is_active", "ValueError"),
    ):  # fmt: skip
        assert old in source
        path.write_text(source.replace(old, new, 1), encoding="utf-8")
        for module in [name for name in sys.modules if name.partition(".")[0] == "cse_made"]:
            del sys.modules[module]
        found = failed(distributions, monkeypatch, tests=[promise])
        assert text in found[promise], (promise, found)


def test_a_plugin_without_a_version_of_the_toolkit_is_found(
    distributions: Distributions, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributions.add("cse-made", plugin(loss("margin")))
    promises = (
        "it_says_which_toolkit_it_needs",
        "its_packages_are_typed",
        "its_factories_are_there",
    )
    found = failed(distributions, monkeypatch, tests=promises)
    for promise, text in zip(
        promises,
        ("no upper bound for cse-toolkit", "no py.typed", "cannot be imported"),
        strict=True,
    ):
        assert text in found[promise]


def test_a_distribution_without_plugins_is_found(
    distributions: Distributions, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = failed(distributions, monkeypatch, "cse-nobody")
    assert "brings no entry point" in found["it_is_active"]


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
        made.add("cse-made", plugin(record, hook="cse_recipes"), requires=NEEDS)
    (made.folder / "cse_made" / "mine.toml").write_text(text, encoding="utf-8")
    registry = Registry.from_plugins(load_plugins(environ={}).infos)
    values: dict[str, Any] = {"recipe": "mine", "registry": registry}
    if rows is not None:
        values["settings"] = made.folder / "settings.toml"
        values["settings"].write_text(TABLE.format(rows=rows), encoding="utf-8")
    return "; ".join(f"{n}: {d}" for n, d in failures(type("S", (RecipeSuite,), values)).items())


def rows_of(made: Distributions) -> str:
    """Return a whole table of the recipe's settings."""
    recipe_failures(made, RECIPE.format(temperature=0.05))
    registry = Registry.from_plugins(load_plugins(environ={}).infos)
    facts = ENCODERS["bert-base"]
    found = settings_of(resolve(registry, recipe="mine", model=facts.model, facts=facts))
    rows = {path: value for path, value in found.items() if path not in OF_THE_RUN}
    return "\n".join(f'"{path}" = [{json.dumps(value)}, "Table 1"]' for path, value in rows.items())


def test_what_a_recipe_breaks_is_found(distributions: Distributions) -> None:
    found = recipe_failures(distributions, RECIPE.format(temperature=-1))
    assert found.startswith("it_resolves_for_every_encoder: loss.infonce.temperature")


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
