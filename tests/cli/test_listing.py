"""Commands that list and show what is installed."""

import json
from pathlib import Path

import pytest

from tests.fixtures.command_line import Cse, refused
from tests.fixtures.distributions import Distributions, loss, plugin

BROKEN = "import no_such_module_at_all\n"


def test_list_plugins_as_json_and_by_kind_and_status(cse: Cse) -> None:
    said = json.loads(cse("list-plugins", "--json").out)
    plugins = {each["key"]: each for each in said["plugins"]}
    assert said["unmatched"] == []
    parts = plugins["cse-toolkit:basics"]["parts"]
    assert {"cls", "mean", "first-last", "mlp"} <= {part["name"] for part in parts["pool"]}
    starter = plugins["cse-starter:starter"]
    assert starter["status"] == "active" and starter["version"]
    said = json.loads(cse("list-plugins", "--json", "--kind", "loss", "--status", "active").out)
    assert [set(each["parts"]) for each in said["plugins"]] == [{"loss"}] * len(said["plugins"])
    assert "cse-toolkit:basics" in [each["key"] for each in said["plugins"]]
    assert cse("list-plugins", "--status", "broken").out.startswith("no installed plugin")


def test_papers_of_a_recipe_a_plugin_and_a_run(cse: Cse, tmp_path: Path) -> None:
    recipe = cse("list-plugins", "--cite", "is-cse-cards").out
    assert recipe.count("@inproceedings{") == 2 and "Instance Smoothed" in recipe
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.toml").write_text('[[negatives]]\nuse = "cse-mocose/queue"\n', encoding="utf-8")
    (paper,) = json.loads(cse("list-plugins", "--cite", str(run), "--json").out)["papers"]
    assert "Impact of Negative Samples" in paper["bibtex"]
    assert cse("list-plugins", "--cite", "mocose").out.strip() == paper["bibtex"]
    assert cse("list-plugins", "--cite", "starter").out.startswith("% no part of starter")
    refused(
        cse("list-plugins", "--cite", "nothing"),
        "--cite: unknown recipe (got 'nothing'); name a run's folder, a recipe, a plugin, or all",
    )


def test_broken_plugins_have_reason_and_fix(cse: Cse, distributions: Distributions) -> None:
    distributions.add("cse-unmet", BROKEN)
    distributions.add("cse-odd", "raise ValueError('a :cat: [red] and [/red]')\n")
    distributions.add("cse-fine", plugin(loss("mine")))
    said = cse("list-plugins")
    assert said.code == 0
    for words in ("broken", "no_such_module_at_all", "update cse-unmet", "loss: mine",
                  "ValueError: a :cat: [red] and [/red]"):  # fmt: skip
        assert words in said.out


def test_plugins_that_are_left_out(cse: Cse, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the flag before and after the command, and by the environment."""
    for words in (
        ("--no-plugin", "starter", "list-plugins", "--json"),
        ("list-plugins", "--json", "--no-plugin", "cse-starter"),
    ):
        plugins = {each["key"]: each for each in json.loads(cse(*words).out)["plugins"]}
        assert plugins["cse-starter:starter"]["status"] == "blocked"
        assert plugins["cse-starter:starter"]["parts"] == {}
    said = cse("list-plugins", "--no-plugin", "startr")
    assert said.code == 0
    assert said.err.startswith("warning: --no-plugin startr") and "starter" in said.err
    monkeypatch.setenv("CSE_DISABLE_PLUGINS", "starter")
    (plugin,) = json.loads(cse("list-plugins", "--status", "blocked", "--json").out)["plugins"]
    assert plugin["key"] == "cse-starter:starter"
    assert "CSE_DISABLE_PLUGINS" in plugin["reason"]


def test_show_plugin_lists_options_with_type_and_default(cse: Cse) -> None:
    said = cse("show-plugin", "basics")
    assert "loss.infonce.temperature" in said.out
    assert "number >= 0.0001" in said.out
    (shown,) = json.loads(cse("show-plugin", "basics", "--json").out)["plugins"]
    (infonce,) = [part for part in shown["parts"] if part["name"] == "infonce"]
    options = {option["path"]: option for option in infonce["options"]}
    assert options["loss.infonce.temperature"]["default"] == "0.05"
    assert all(option["description"] for option in infonce["options"])
    assert not options["loss.infonce.target"]["own"]
    said = cse("show-plugin", "dclr", "--markdown").out
    assert said.startswith("| option | type | default | what it does |\n| --- |")
    assert "| `negatives.noise.times` |" in said
    assert "`loss.dclr.target`" not in said


def test_recipes(cse: Cse, tmp_path: Path) -> None:
    names = [each["name"] for each in json.loads(cse("list-recipes", "--json").out)["recipes"]]
    assert "simcse" in names
    assert "simcse" in cse("list-recipes").out
    shown = json.loads(cse("show-recipe", "simcse", "--json").out)
    assert shown["problem"] is None
    assert [part["use"] for part in shown["plan"]["parts"] if part["kind"] == "loss"] == ["infonce"]
    assert shown["when"]
    assert shown["text"].strip() == cse("show-recipe", "simcse", "--toml").out.strip()
    assert "loss.infonce" in cse("show-recipe", "simcse").out
    file = tmp_path / "mine.toml"
    file.write_text('[[loss]]\nuse = "nothing-of-this-name"\n', encoding="utf-8")
    said = cse("show-recipe", str(file))
    assert said.code == 0
    assert "nothing-of-this-name" in said.err
    refused(cse("show-recipe", str(file), "--toml", "--json"), "--toml")


def test_mistakes_of_usage(cse: Cse) -> None:
    for words, *expected in (
        ("list-plugins --kind augg", "--kind", "did you mean aug?"),
        ("list-plugins --status fine", "--status", "active"),
        ("show-plugin startr", "startr", "did you mean", "starter"),
        ("show-recipe simce", "simce", "did you mean simcse"),
        ("trian", "trian", "train"),
        ("list-plugins --jsn", "--jsn", "--json"),
        ("train --lr 3", "--lr", "--train.lr"),
        ("train --loss", "--loss", "argument"),
        ("--no-plugin", "--no-plugin"),
    ):
        refused(cse(*words.split()), *expected)
