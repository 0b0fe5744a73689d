"""``train --help`` and ``train --dry-run``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cse_cli.installed import Installed
from tests.fixtures.command_line import Cse


def test_help_shows_the_options_of_the_chosen_parts(cse: Cse) -> None:
    told = cse("train", "--loss", "infonce", "--loss", "+infonce:second", "--help")
    assert told.code == 0
    for words in ("--loss.infonce.temperature", "--loss.second.temperature", "--train.lr",
                  "loss.second (cse-toolkit ", "100000; 0.05", "[0.9, 0.999]"):  # fmt: skip
        assert words in told.out
    assert "--loss.second.temperature" not in cse("train", "--help").out


def test_help_of_a_wrong_choice_shows_what_it_can(cse: Cse) -> None:
    told = cse("train", "--loss", "infonce", "--aug", "nothing-of-this-name", "--help")
    assert told.code == 0
    assert "--loss.infonce.temperature" in told.out


def test_the_plan_says_parts_views_passes_and_steps(cse: Cse, sentences: Path) -> None:
    told = cse("train", "--dry-run", "--data", str(sentences), "--train.batch_size", "8")
    assert told.code == 0
    for words in ("loss.infonce (cse-toolkit ", "positive: column text, branch online",
                  "24 rows", "3 steps", "train.batch_size = 8, from the command line"):  # fmt: skip
        assert words in told.out


def test_the_plan_counts_no_steps_that_the_pairs_of_a_round_decide(cse: Cse) -> None:
    if not Installed().registry.has("recipe", "neighbour"):
        pytest.skip("cse-infocse is not installed")
    told = cse("train", "--recipe", "neighbour", "--dry-run").out
    assert "in each round the steps that its pairs make" in told
    told = cse("train", "--recipe", "neighbour", "--train.max_steps", "1", "--dry-run").out
    assert "in each round 1 step," in told


def test_the_plan_as_json_and_where_settings_are_from(cse: Cse, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[train]\nlr = 1e-4\nbatch_size = 4\n", encoding="utf-8")
    words = ("train", "--dry-run", "--json", "--recipe", str(file), "--set", "train.batch_size=6")
    told = json.loads(cse(*words).out)
    assert told["settings"]["train"]["batch_size"] == 6
    assert told["settings"]["train"]["lr"] == 1e-4
    assert "train.batch_size = 6, from the command line" in told["changed"]
    assert f"train.lr = 0.0001, from {file}" in told["changed"]


def test_flags_later_on_the_line_win(cse: Cse) -> None:
    words = (
        "train",
        "--dry-run",
        "--json",
        "--train.lr=0.1",
        "--set",
        "train.lr=0.2",
        "--seed",
        "7",
    )
    settings = json.loads(cse(*words).out)["settings"]
    assert settings["train"]["lr"] == 0.2
    assert settings["train"]["seed"] == 7


def test_a_saved_recipe_gives_the_same_plan(cse: Cse, tmp_path: Path) -> None:
    file = tmp_path / "saved.toml"
    words = ("train", "--dry-run", "--json", "--pool", "mean", "--loss.infonce.temperature=0.1")
    first = json.loads(cse(*words, "--save-recipe", str(file)).out)
    again = json.loads(cse("train", "--dry-run", "--json", "--recipe", str(file)).out)
    assert again["settings"] == first["settings"] | {"name": again["settings"]["name"]}
    assert again["parts"] == first["parts"]
