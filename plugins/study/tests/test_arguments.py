"""Places left unset, files beside a study, runs without training, and words of commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from cse_study.definition.reading import Definition, read_study
from cse_study.planning.arguments import arguments_of, words_of
from cse_study.planning.inputs import Inputs
from cse_study.planning.plan import Plan, Wish, plan_study

from cse_core.errors import CseError

COMMAND = """
summary = "x"
kind = "command"
command = ["bench", "--recipe", "{recipe}", "{more}", "--steps", "{steps}", "--model={model}"]
[arguments]
model = "@model"
steps = 5
[[axes]]
values = { recipe = ["simcse", "mocose"], more = [[], ["--data", "@sentences"]] }
"""


def written(folder: Path, text: str) -> Definition:
    file = folder / "mine.toml"
    file.write_text(text, encoding="utf-8")
    return read_study(file)


def plan(folder: Path, text: str) -> Plan:
    return plan_study(written(folder, text), Wish())


def test_words_of_a_command(tmp_path: Path) -> None:
    found = written(tmp_path, COMMAND)
    words = [
        words_of(found.study, arguments_of(found.study, point, Inputs(), steps=2, rows=7))
        for point in found.points
    ]
    assert words[0] == ["bench", "--recipe", "simcse", "--steps", "2", "--model=starter"]
    assert words[1] == ["bench", "--recipe", "mocose", "--data", "starter", "--steps", "2",
                        "--model=starter"]  # fmt: skip


def test_an_unknown_argument_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(CseError, match=r"point 1 .*command.*no such argument.*recipe"):
        plan(tmp_path, COMMAND.replace("{recipe}", "{recip}"))


def test_a_place_may_leave_a_path_unset(tmp_path: Path) -> None:
    found = written(tmp_path, """
summary = "x"
[settings]
"train.lr" = 1e-4
[[axes]]
values = { aug = ["@default", "fgsm"], "train.lr" = [1e-3, "@default"] }
columns = { share = [0, 1] }
labels = ["a", "b"]
""")  # fmt: skip
    assert [point.settings for point in found.points] == [{"train.lr": 1e-3}, {"aug": "fgsm"}]
    assert [point.columns["share"] for point in found.points] == [0, 1]
    one, two = (cell.run.options["train.lr"] for cell in plan_study(found, Wish()).cells)
    assert (one, two) == (1e-3, 1e-4)


def test_a_recipe_beside_the_study(tmp_path: Path) -> None:
    text = 'summary = "x"\n[settings]\nrecipe = "@file:parts/mine.toml"'
    with pytest.raises(CseError, match=r"no such file.*@file:parts/mine.toml"):
        plan(tmp_path, text)
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "mine.toml").write_text('extends = "simcse"\n[train]\nbatch_size = 7\n')
    assert plan(tmp_path, text).cells[0].run.options["train.batch_size"] == 7


def test_a_model_that_is_scored_as_it_is(tmp_path: Path) -> None:
    text = """
summary = "x"
seeds = [1, 2]
[settings]
model = "starter"
"train.lr" = 1e-4
[[axes]]
values = { recipe = ["@none", "simcse"] }
"""
    cells = plan(tmp_path, text).cells
    assert [cell.run.untrained for cell in cells] == [True, True, False, False]
    assert cells[0].run.key == cells[1].run.key
    assert cells[0].run.steps == 0
    assert cells[0].run.recipe == {"model": {"name": "starter"}}


def test_runs_that_a_command_needs_are_planned(tmp_path: Path) -> None:
    text = """
summary = "x"
kind = "command"
command = ["neighbours", "{run}"]
[arguments]
run = "@run:first"
[runs.first]
recipe = "is-cse"
"""
    found = plan(tmp_path, text)
    assert [run.seed for run in found.starts] == [1]
    with pytest.raises(CseError, match="no such run to start from"):
        plan(tmp_path, text.replace("[runs.first]", "[runs.second]"))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('summary = "x"\n[arguments]\na = 1', "arguments belong to a command or a function"),
        (COMMAND + "[settings]\nrecipe = 'simcse'", "settings belongs to runs"),
        (COMMAND + "columns = { a = [1] }", "columns.a: 1 of them for 2 places"),
        ('summary = "x"\n[[axes]]\nvalues = { recpe = ["a"] }', "axes.1.values: unknown setting"),
        ('summary = "x"\n[paper.variants.a]\nnumbers = [1, 2]', "2 numbers for 1 points"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, line: str) -> None:
    with pytest.raises(CseError, match=line):
        written(tmp_path, text)
