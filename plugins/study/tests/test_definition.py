"""Study files: what is read, and one line for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest
from cse_study.definition.points import chosen_points
from cse_study.definition.reading import Definition, read_study

from cse_core.errors import CseError

GOOD = """
summary = "Queue size"
source = "Table 7"
seeds = [42]
[settings]
recipe = "mocose"
model = "@model"
[settings.train]
lr = 1e-4
[[axes]]
name = "queue"
values = { "negatives.queue.size" = [128, 128, 256], "negatives.queue.first_fill" = [1, 32, 1] }
[[axes]]
values = { "train.batch_size" = [32, 64] }
[paper]
numbers = [76.4, 75.92, 76, 1, 2, "-"]
"""


def written(folder: Path, text: str) -> Definition:
    file = folder / "mine.toml"
    file.write_text(text, encoding="utf-8")
    return read_study(file)


def test_axes_are_crossed_and_the_lists_of_one_are_zipped(tmp_path: Path) -> None:
    found = written(tmp_path, GOOD)
    assert found.name == "mine"
    assert [point.label for point in found.points[:3]] == [
        "128, 1, 32",
        "128, 1, 64",
        "128, 32, 32",
    ]
    assert found.points[-1].name == "queue=256, 1; batch_size=64"
    assert found.points[-1].settings == {
        "negatives.queue.size": 256, "negatives.queue.first_fill": 1, "train.batch_size": 64
    }  # fmt: skip
    assert found.study.settings == {"recipe": "mocose", "model": "@model", "train.lr": 1e-4}
    assert found.study.paper.numbers == [76.4, 75.92, 76.0, 1.0, 2.0, None]


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        ([], [1, 2, 3, 4, 5, 6]),
        (["queue=128, 1,256,1"], [1, 2]),
        (["queue=128, 1,256, 1"], [1, 2, 5, 6]),
        (["queue=128, 1", "batch_size=64"], [2]),
        (["1,4-5"], [1, 4, 5]),
    ],
)
def test_points_are_chosen(tmp_path: Path, wanted: list[str], numbers: list[int]) -> None:
    points = written(tmp_path, GOOD).points
    if numbers == [1, 2]:
        with pytest.raises(CseError, match="no such place"):
            chosen_points(points, wanted)
        return
    assert [point.number for point in chosen_points(points, wanted)] == numbers


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("summary = 3", ["summary: must be a text (got 3)"]),
        ("seeds = [1, 1]\nsumary = ''", ["no key 'sumary'; did you mean summary?",
                                         "summary: is missing", "seeds: has one value twice"]),
        ("summary = 'x'\nseeds = []", ["seeds: must have one entry or more"]),
        ("summary = 'x'\nkind = 'trian'", ["kind: must be 'train', 'command' or 'function'"]),
        ("summary = 'x'\n[settings]\nrecpe = 'a'", ["'recpe'; did you mean recipe?"]),
        ("summary = 'x'\n[settings.train]\nseed = 1", ["seeds of a study are its key seeds"]),
        ("summary = 'x'\n[[axes]]\nvalues = { 'train.lr' = [1, 2], 'train.eps' = [1] }",
         ["axes.1.values: lists of one axis are zipped", ]),
        ("summary = 'x'\n[[axes]]\nvalues = { 'train.lr' = [1, 2] }\nlabels = ['a']",
         ["axes.1: labels: 1 of them for 2 places"]),
        ("summary = 'x'\n[paper]\nnumbers = ['a', 1]", ["paper.numbers.1: must be a number"]),
        ("summary = 'x'\n[paper]\nnumbers = [2, 1]", ["paper.numbers: 2 numbers for 1 points"]),
        ("summary = 'x'\n[settings]\nmodel = '@run:a'", ["add a table [runs.a]"]),
        ("summary = 'x'\nkind = 'command'", ["command belongs to a study with kind"]),
        ("summary = 'x'\n[[figures]]\ntype = 'curv'", ["figures.1.type: must be 'curve'"]),
    ],
)  # fmt: skip
def test_every_mistake_is_a_line(tmp_path: Path, text: str, lines: list[str]) -> None:
    with pytest.raises(CseError) as caught:
        written(tmp_path, text)
    said = str(caught.value).splitlines()
    assert len(said) == len(lines)
    for words in lines:
        assert any(words in line and "mine.toml" in line for line in said), said


def test_places_of_an_axis_set_what_they_name_alone(tmp_path: Path) -> None:
    found = written(
        tmp_path,
        """
summary = "Two methods"
[[axes]]
name = "method"
[[axes.places]]
label = "SimCSE"
recipe = "simcse"
[[axes.places]]
label = "queue"
recipe = "simcse"
negatives = ["queue"]
train.lr = 1e-4
""",
    )
    assert [point.label for point in found.points] == ["SimCSE", "queue"]
    assert found.points[0].settings == {"recipe": "simcse"}
    assert found.points[1].settings == {
        "recipe": "simcse", "negatives": ["queue"], "train.lr": 1e-4
    }  # fmt: skip


@pytest.mark.parametrize(
    ("axis", "line"),
    [
        ('places = ["simcse"]', "places: is not a list of tables; write [[axes.places]]"),
        ('places = [{ recipe = "simcse" }]', "places: 1 without a label"),
        ('places = [{ label = "a" }]\nlabels = ["a"]', "places stand instead of values and labels"),
    ],
)
def test_mistakes_in_places(tmp_path: Path, axis: str, line: str) -> None:
    with pytest.raises(CseError) as raised:
        written(tmp_path, f'summary = "x"\n[[axes]]\n{axis}\n')
    assert line in str(raised.value)
