"""Places left unset, files beside a study, columns, and runs without training."""

from __future__ import annotations

from pathlib import Path

import pytest
from cse_study.definition.reading import Definition, read_study
from cse_study.planning.plan import Plan, Wish, plan_study
from cse_study.results.table import baseline_of

from cse_core.errors import CseError


def written(folder: Path, text: str) -> Definition:
    file = folder / "mine.toml"
    file.write_text(text, encoding="utf-8")
    return read_study(file)


def plan(folder: Path, text: str) -> Plan:
    return plan_study(written(folder, text), Wish())


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


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            'summary = "x"\nkind = "function"\ncall = "a.b:c"\n[after]\ncall = "a.b:c"',
            "after belongs to a study with kind",
        ),
        (
            'summary = "x"\n[[axes]]\nvalues = { aug = ["a", "b"] }\ncolumns = { a = [1] }',
            "columns.a: 1 of them for 2 places",
        ),
        ('summary = "x"\nwithin = "base"', "within: no axis or column is called base"),
        ('summary = "x"\n[[axes]]\nvalues = { recpe = ["a"] }', "unknown setting 'recpe'"),
        ('summary = "x"\n[paper.variants.a]\nnumbers = [1, 2]', "2 numbers for 1 points"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, line: str) -> None:
    with pytest.raises(CseError, match=line):
        written(tmp_path, text)


def test_points_are_compared_with_the_first_of_their_own_place(tmp_path: Path) -> None:
    found = written(tmp_path, """
summary = "x"
within = "base"
[[axes]]
name = "method"
values = { recipe = ["simcse", "hicl", "sncse", "hicl-sncse"] }
columns = { base = ["a", "a", "b", "b"] }
""")  # fmt: skip
    bases = [baseline_of(found, found.points, point).number for point in found.points]
    assert bases == [1, 1, 3, 3]
    assert baseline_of(found, found.points[1:], found.points[1]).number == 2
