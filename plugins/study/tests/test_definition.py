"""Study files: what is read, and one line for each mistake."""

import json
from pathlib import Path

import pytest
from cse_study.definition.reading import Definition, chosen_points, read_study
from cse_study.results.table import baseline_of

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
CLAIM = '[[claims]]\nsays = "a"\nbetter = "the run"\nthan = "the run"\n'


def written(folder: Path, text: str) -> Definition:
    file = folder / "mine.toml"
    file.write_text(text, encoding="utf-8")
    return read_study(file)


def test_axes_are_crossed_and_the_lists_of_one_are_zipped(tmp_path: Path) -> None:
    found = written(tmp_path, GOOD)
    labels = [point.label for point in found.points[:3]]
    assert (found.name, labels) == ("mine", ["128, 1, 32", "128, 1, 64", "128, 32, 32"])
    assert found.points[-1].name == "queue=256, 1; batch_size=64"
    assert found.points[-1].settings == {
        "negatives.queue.size": 256, "negatives.queue.first_fill": 1, "train.batch_size": 64
    }  # fmt: skip
    assert found.study.settings == {"recipe": "mocose", "model": "@model", "train.lr": 1e-4}
    (printed,) = found.printed
    values = [printed.cell(label, "*.test") for label in found.labels]
    assert [cell and cell.value for cell in values] == [76.4, 75.92, 76.0, 1.0, 2.0, None]
    chosen = {
        (): [1, 2, 3, 4, 5, 6],
        ("queue=128, 1", "queue=256, 1"): [1, 2, 5, 6],
        ("queue=128, 1", "batch_size=64"): [2],
        ("batch_size=64,32", "1,4-5"): [1, 4, 5],
    }
    for wanted, numbers in chosen.items():
        points = chosen_points(found.points, wanted)
        assert [point.number for point in points] == numbers, wanted
    for text, line in {
        "queue=128, 1,256, 1": "no such place",
        "ques=1": "did you mean queue",
        "0": "points 1 to 6",
        "x": "no point",
    }.items():
        with pytest.raises(CseError, match=line):
            chosen_points(found.points, [text])


def test_labels_show_numbers_as_they_are_written(tmp_path: Path) -> None:
    lists = '"train.betas" = [[9e-1, 0.990], [0.5, 1e-0]], "train.lr" = [1e-5, 3]'
    points = written(tmp_path, f'summary = "x"\n[[axes]]\nvalues = {{ {lists} }}').points
    assert [point.label for point in points] == ["9e-1 0.990, 1e-5", "0.5 1e-0, 3"]
    assert points[0].settings == {"train.betas": [0.9, 0.99], "train.lr": 0.00001}
    assert json.dumps(points[0].settings["train.lr"]) == "1e-05", "keys of runs stay"


def test_places_of_an_axis_set_what_they_name_alone(tmp_path: Path) -> None:
    text = """
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
"""
    points = written(tmp_path, text).points
    assert {point.label: point.settings for point in points} == {
        "SimCSE": {"recipe": "simcse"},
        "queue": {"recipe": "simcse", "negatives": ["queue"], "train.lr": 1e-4},
    }
    text = """
summary = "x"
[settings]
"train.lr" = 1e-4
[[axes]]
values = { aug = ["@default", "fgsm"], "train.lr" = [1e-3, "@default"] }
columns = { share = [0, 1] }
labels = ["a", "b"]
"""
    points = written(tmp_path, text).points
    assert [point.settings for point in points] == [{"train.lr": 1e-3}, {"aug": "fgsm"}]
    assert [point.columns["share"] for point in points] == [0, 1]


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
    assert baseline_of(found, found.points[1:], found.points[1]).number == 1, "of the file"


def test_every_mistake_is_a_line(tmp_path: Path) -> None:
    axis = "summary = 'x'\n[[axes]]\n"
    mistakes = {
        "summary = 3": ["summary: input should be a valid string (got 3)"],
        "seeds = [1, 1]\nsumary = ''": ["no key 'sumary'; did you mean summary?",
                                        "summary: field required", "seeds: has one value twice"],
        "summary = 'x'\nseeds = []": ["seeds: list should have at least 1 item"],
        "summary = 'x'\nkind = 'trian'": ["kind: input should be 'train', 'command' or 'function'"],
        "summary = 'x'\n[settings]\nrecpe = 'a'": ["'recpe'; did you mean recipe?"],
        "summary = 'x'\n[settings.train]\nseed = 1": ["seeds of a study are its key seeds"],
        f"{axis}values = {{ 'train.lr' = [1, 2], 'train.eps' = [1] }}":
            ["axes.1.values: lists of one axis are zipped"],
        f"{axis}values = {{ 'train.lr' = [1, 2] }}\nlabels = ['a']":
            ["axes.1: labels: 1 of them for 2 places"],
        f"{axis}values = {{ aug = ['a', 'b'] }}\ncolumns = {{ a = [1] }}":
            ["columns.a: 1 of them for 2 places"],
        f"{axis}values = {{ recpe = ['a'] }}": ["unknown setting 'recpe'"],
        f"{axis}places = ['simcse']": ["is not a list of tables; write [[axes.places]]"],
        f"{axis}places = [{{ recipe = 'simcse' }}]": ["places: 1 without a label"],
        f"{axis}places = [{{ label = 'a' }}]\nlabels = ['a']":
            ["places stand instead of values and labels"],
        f"{axis}values = {{ 'train.lr' = [1] }}\n{axis[14:]}values = {{ 'x.lr' = [1] }}":
            ["axes: two are called lr"],
        f"{axis}name = 'a'\nvalues = {{ 'train.lr' = [1] }}\n[tune]\nover = ['rate']":
            ["tune.over: rate is not an axis; axes are a"],
        "summary = 'x'\n[paper]\nnumbers = ['a', 1]": ["paper.numbers.1: input should be a valid"],
        "summary = 'x'\n[paper]\nnumbers = [2, 1]": ["paper.numbers: 2 numbers for 1 points"],
        "summary = 'x'\n[paper.variants.a]\nnumbers = [1, 2]": ["2 numbers for 1 points"],
        "summary = 'x'\n[paper]\nrows = ['a', 'b']": ["paper.rows: 2 rows for 1 points"],
        "summary = 'x'\n[settings]\nmodel = '@run:a'": ["add a table [runs.a]"],
        "summary = 'x'\nkind = 'command'": ["command belongs to a study with kind"],
        "summary = 'x'\ncall = 'a:b'": ["call belongs to a study with kind"],
        "summary = 'x'\nkind = 'function'\ncall = 'a:b'\n[after]\ncall = 'a:b'":
            ["after belongs to a study with kind"],
        f"{axis}values = {{ 'train.lr' = [1979-05-27] }}": ["train.lr: a date is not a setting"],
        f"{axis}name = 'a'\nplaces = [{{ label = 'a', 'train.lr' = 1 }}]\n{axis[14:]}"
        "values = { 'train.lr' = [1] }": ["axes: two set train.lr, so one of them would"],
        f"{axis}places = [{{ label = 'a', recipe = '@none', pool = ['cls'] }}]\nname = 'a'":
            ["a=a is scored as it is, so pool would change nothing; [scores.options]"],
        "summary = 'x'\n[[figures]]\ntype = 'curve'\nlines = 'nope'": ["figures.1.lines: no axis"],
        "summary = 'x'\n[[figures]]\ntype = 'box'\nx = 'nope'": ["figures.1.x: no axis or column"],
        "summary = 'x'\n[tune]\nover = ['a']\nseeds = [-1]": ["tune.seeds.1: input should be"],
        "summary = 'x'\nwithin = 'base'": ["within: no axis or column is called base"],
        "summary = 'x'\nbaseline = 'base'": ["baseline: no point has this label"],
        "summary = 'x'\n[[figures]]\ntype = 'curv'": ["figures.1.type: input should be 'curve'"],
        "summary = 'x'\n" + CLAIM: ["claims.0.better: no point", "claims.0.than: no point"],
        f"{axis}values = {{ recipe = ['a', 'b'] }}\n{CLAIM}score = 'x'".replace("the run", "a"):
            ["claims.0.score: scores.shown lacks it"],
        "summary = 'x'\n[settings]\nrecipe = '@file:parts/mine.toml'":
            ["no such file (got '@file:parts/mine.toml')"],
    }  # fmt: skip
    for text, lines in mistakes.items():
        with pytest.raises(CseError) as caught:
            written(tmp_path, text)
        said = str(caught.value).splitlines()
        assert len(said) == len(lines), (text, said)
        for words in lines:
            assert any(words in line and "mine.toml" in line for line in said), (text, said)
