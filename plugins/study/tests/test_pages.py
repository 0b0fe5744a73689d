"""Pages: Markdown with pictures that are readable without colour."""

import html
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from cse_study.definition.reading import read_study
from cse_study.execution.folder import StudyFolder, write_json
from cse_study.execution.jobs import Scoring
from cse_study.results.rows import Row, rows_of
from cse_study.results.table import Line, Results

from tests.fixtures.command_line import Cse, refused
from tests.fixtures.studies import plan_of

pytest.importorskip("matplotlib", reason="pages need matplotlib; pip install matplotlib")
from cse_study.pages.figures import (
    COLOURS,
    Series,
    box_picture,
    lines_picture,
    look,
    scatter_picture,
)
from cse_study.pages.run_page import spectrum_picture
from cse_study.pages.study_page import FIGURES, study_page, text_tables


def pictures_of(page: Path) -> dict[str, str]:
    """Return the pictures of a page by what they show; their ink follows light and dark pages."""
    found = {}
    for alt, file in re.findall(r"^!\[(.*)\]\((.*)\)$", page.read_text(), re.MULTILINE):
        svg = page.with_name(file).read_text()
        assert alt and "currentColor" in svg and "#010203" not in svg and "<script" not in svg
        style = ElementTree.fromstring(svg).find(".//{http://www.w3.org/2000/svg}style")
        assert style is not None and "prefers-color-scheme:dark" in str(style.text)
        found[alt] = svg
    return found


def made(folder: Path, seed: int, level: float, recipe: str = "simcse") -> Path:
    folder.mkdir(parents=True)
    (folder / "run.toml").write_text(
        f'name = "{recipe}"\n[model]\nname = "starter"\n[data]\npath = ["starter"]\n'
        f"[train]\nseed = {seed}\nmax_steps = 20\n[run.data]\nrows = 9\ndev = ['starter.dev']\n"
    )
    lines = [
        {
            "step": step, "round": 0, "loss": level / step + seed / 10, "infonce.loss": 1.0,
            "infonce.negatives.in-batch": 63.0, "infonce.negatives.queue": 128.0 + step,
            "infonce.negatives.queue.age": step / 2, "starter.dev.spearman": level + step,
            "starter.dev.uniformity": -step / 20, "starter.dev.effective_rank": 40.0 + step,
        }
        for step in range(2, 21, 2)
    ]  # fmt: skip
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    scores = {"starter.dev.spearman": level + 20, "starter.dev.alignment": 0.2 + seed / 50,
              "starter.dev.uniformity": -2.0 + level / 100}  # fmt: skip
    result = {"steps": 20, "step": 20, "chosen_by": "starter.dev.spearman", "score": level + 20,
              "seconds": 1.0, "scores": scores}  # fmt: skip
    (folder / "result.json").write_text(json.dumps(result))
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """Two runs of one recipe with other seeds, and one of another recipe."""
    levels = {("a", 1): 40.0, ("a", 2): 42.0, ("b", 1): 30.0}
    return [made(tmp_path / f"{n}-{s}", s, level, n) for (n, s), level in levels.items()]


def light(colour: str) -> float:
    """Return the relative luminance of a colour, by WCAG."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_lines_differ_without_colour_and_colours_from_paper_and_from_dark() -> None:
    looks = [look(number) for number in range(64)]
    assert len({(each["marker"], str(each["linestyle"])) for each in looks}) == 64
    assert len({each["color"] for each in looks[:8]}) == 8
    for paper in ("#ffffff", "#14171a"):
        for colour in COLOURS:
            low, high = sorted((light(colour), light(paper)))
            assert (high + 0.05) / (low + 0.05) >= 3


def words_of(svg: str) -> list[str]:
    """Return the texts of a figure, in order."""
    return [html.unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]


def test_what_pictures_show() -> None:
    series = [
        Series("ours", [64, 128, 256], [0.6, 0.65, None], [0.05, 0.025, None], [3, 3, 0]),
        Series("", [64, 128, 256], [0.7, 0.71, 0.72], paper=True),
    ]
    picture = lines_picture("Queue", {"sts": series}, "queue", xscale="log")
    assert picture is not None
    assert picture.alt == "Queue: sts from 0.55 to 0.72 by queue, ours, paper"
    assert "n = 3 seeds; bars are standard deviations" in picture.caption
    assert re.findall(r">(64|128|256|paper|ours)<", picture.svg) == "64 128 256 ours paper".split()
    assert lines_picture("Nothing", {"sts": [Series("x", [1], [None])]}, "x") is None
    names = [Series("", ["mean", "cls"], [1.0, 2.0]), Series("b", ["cls", "last"], [1.0, 2.0])]
    picture = lines_picture("Pools", {"sts": names}, "pool")
    assert picture is not None and words_of(picture.svg)[:3] == ["mean", "cls", "last"]
    spectrum = {"results": {"x.test": {"singular_values": {"values": [1.0, 0.5, 0.0]}}}}
    assert spectrum_picture([("run", spectrum)]) is not None
    points = [(float(n), 2.0 * n, "") for n in range(40)]
    many = scatter_picture("Many", {"x": points}, "a", "b")
    assert many is not None and many.alt == "Many: b from 0 to 78 by a, x"
    groups = {f"a method with a long name {each}": [1.0, 2.0, 4.0] for each in range(20)}
    boxes = box_picture("seeds", groups, "method", "score")
    assert boxes is not None and len(boxes.svg) < 150_000
    assert len(re.findall(r">a method with a long name \d+, n = 3<", boxes.svg)) == 20


def test_the_page_of_runs(runs: list[Path], tmp_path: Path, cse: Cse) -> None:
    out = tmp_path / "page/runs.md"
    found = cse("plot", *map(str, runs), "--out", str(out), "--json")
    assert json.loads(found.out)["pictures"] == [
        "Loss", "Dev scores", "Spread of the vectors", "Alignment against uniformity"
    ]  # fmt: skip
    assert len(pictures_of(out)) == 4
    assert "Runs that differ only in their seed are drawn as one" in out.read_text()
    for name in ("lr$5e^$x", "_hidden", "<b>&", "中文 😀", "a\x1b[31m"):
        made(tmp_path / "named" / name, 1, 40.0)
    folder = str(tmp_path / "named")
    found = cse("plot", folder, "--out", str(out))
    assert found.code == 0 and "Warning" not in found.err
    assert "4 pictures of 5 runs" in found.out, "folders hold runs"
    svg = "".join(pictures_of(out).values())
    for name in ("lr$5e^$x", "_hidden", "<b>&", "中文 😀", r"a\x1b[31m"):
        assert f"{html.escape(name, quote=False)}</text>" in svg
    metrics = tmp_path / "named/_hidden/metrics.jsonl"
    metrics.write_text('{"step": -5, "loss": -1e308}\n{"step": 5, "loss": 1e308}\n')
    assert cse("plot", folder, "--out", str(out)).code == 0, "numbers too large to be drawn"


def test_mistakes(
    runs: list[Path], tmp_path: Path, cse: Cse, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(cse("plot"), "names no run")
    refused(cse("plot", str(tmp_path / "none"), "--out", str(tmp_path / "new/p.md")), "no such")
    assert not (tmp_path / "new").exists()
    (tmp_path / "empty").mkdir()
    refused(cse("plot", str(tmp_path / "empty")), "there are no runs")
    other = tmp_path / "other.md"
    other.write_text("mine")
    refused(cse("plot", str(runs[0]), "--out", str(other)), "holds something else than a page")
    refused(cse("plot", str(runs[0]), "--out", str(tmp_path / "a.html")), "name it *.md")
    refused(cse("plot", str(runs[0]), "--out", str(tmp_path)), "is a folder")
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    refused(cse("plot", str(runs[0])), "pages need matplotlib", "pip install matplotlib")


STUDY = """
summary = "How large a batch is"
source = "Figure 9"
seeds = [1, 2, 3]
note = "Made up."
[settings]
recipe = "simcse"
model = "@model"
data = "@sentences"
[settings.train]
max_steps = 20
[[axes]]
name = "batch"
values = { "train.batch_size" = [16, 32, 64] }
columns = { distance = [1.5, 2.5, 5.0] }
[[axes]]
name = "rate"
values = { "train.lr" = [1e-5, 3e-5] }
labels = ["slow", "fast"]
[scores]
shown = "starter.test"
[paper]
metric = "Spearman x100"
numbers = [70.0, 71.0, 72.0, "-", 73.0, 74.0]
[[figures]]
type = "curve"
x = "batch"
lines = "rate"
[[figures]]
type = "box"
x = "batch"
[[figures]]
type = "trace"
y = ["dev", "loss", "uniformity"]
lines = "rate"
[[figures]]
type = "scatter"
x = "distance"
[[figures]]
type = "scatter"
x = "alignment"
y = "uniformity"
lines = "rate"
[[figures]]
type = "scatter"
x = "gold"
y = "cosine"
[[figures]]
type = "spectrum"
"""
TITLES = [
    "starter.test.spearman by batch",
    "starter.test: seeds of each batch",
    "dev, loss, uniformity over steps",
    "starter.test.spearman by distance",
    "starter.test.uniformity by alignment",
    "Cosine by gold score: starter.test",
    "Spectrum of the vectors",
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A study whose runs and scores were made up, but for its plan."""
    place = tmp_path_factory.mktemp("study")
    (place / "batches.toml").write_text(STUDY)
    definition = read_study(place / "batches.toml")
    plan = plan_of(definition)
    folder, scoring = StudyFolder(place / "studies"), Scoring("s" * 16)
    for cell in plan.cells:
        level = 40.0 + cell.point.number + cell.seed / 4
        made(folder.run(cell.run.key), cell.seed, level)
        about = {
            "starter.test": {
                "spearman": level + 15, "pairs": 30, "alignment": {"value": 0.3},
                "uniformity": {"value": -2.0 - level / 50},
                "singular_values": {"values": [2.0**-n for n in range(12)]},
            }
        }  # fmt: skip
        scores = folder.scores(cell.run.key, f"{scoring.key}.json")
        write_json(scores, {"encoder": "pooling mean", "results": about})
        rows = ["set\tgold\tcosine\tsubset\tsentence1\tsentence2"]
        rows += [
            f"starter.test\t{gold}\t{gold / 6 + n / 40 + cell.seed / 100}\t\t\"a\tb"
            for gold in range(6) for n in range(5)
        ]  # fmt: skip
        scores.with_suffix(".tsv").write_text("\n".join(rows) + "\n")
    return Results(definition, plan.points, rows_of(plan, folder, scoring), folder, scoring)


def test_the_page_of_a_study(results: Results) -> None:
    page, out = study_page(results, "cse x"), results.folder.path / "x.md"
    assert [picture.title for picture in page.pictures] == TITLES
    page.write(out)
    text, shown = out.read_text(), list(pictures_of(out))
    assert "56.50 ± 0.25" in text and "Written by `cse x`." in text
    assert "p and the 95% intervals are corrected by Holm for the " in text
    assert [alt.startswith(title) for alt, title in zip(shown, TITLES, strict=True)] == [True] * 7
    name = "starter.test.spearman"
    curve = f"{name} by batch: {name} from 56.25 to 74 by batch, slow, paper, slow, fast, paper"
    assert shown[0].startswith(curve)
    study_page(replace(results, rows=[]), "").write(out)
    assert "There are no numbers for the figure `curve` yet." in out.read_text()


def written(folder: Path, text: str) -> Results:
    (folder / "mine.toml").write_text(text, encoding="utf-8")
    found = read_study(folder / "mine.toml")
    return Results(found, found.points, [], StudyFolder(folder), None)


def test_lists_of_an_output(tmp_path: Path) -> None:
    results = written(tmp_path, """
summary = "x"
kind = "function"
call = "a.b:c"
[[axes]]
name = "n"
values = { k = [1, 2] }
[[figures]]
type = "table"
show = ["sentences", "rounds.0.pairs"]
""")  # fmt: skip
    outputs: list[dict[str, Any]] = [
        {"sentences": ["one", "two"], "rounds": [{"pairs": [["a", "b"], ["c", None]]}]},
        {"sentences": [{"text": "t", "near": [[0.5, "u"], [0.25, "v"]]}]},
    ]
    rows = [Row(point, 1, "key", "done", {}, {}, {}, output)
            for point, output in zip(results.points, outputs, strict=True)]  # fmt: skip
    tables = text_tables(replace(results, rows=rows), results.definition.study.figures[0])
    assert [(table.title, table.heads, table.rows) for table in tables] == [
        ("1: sentences", ["", ""], [["0", "one"], ["1", "two"]]),
        ("1: rounds.0.pairs", ["", ""], [["0", "a; b"], ["1", "c; -"]]),
        ("2: sentences", ["", "text", "near"], [["0", "t", "0.5, u; 0.25, v"]]),
    ]


def test_the_graph_of_an_output(tmp_path: Path) -> None:
    results = written(tmp_path, """
summary = "x"
kind = "function"
call = "a.b:c"
[[figures]]
type = "graph"
""")  # fmt: skip
    output = {"similarities": [[0, 1, 0.75], [0, 2, 0.25], [1, 2, 0.5]], "edges": [[0, 1]],
              "clusters": [[0, 1], [2]]}  # fmt: skip
    rows = [Row(results.points[0], 1, "key", "done", {}, {}, {}, output)]
    figure = results.definition.study.figures[0]
    (picture,) = FIGURES["graph"](replace(results, rows=rows), figure)
    assert picture is not None and picture.alt.endswith("cluster 1, cluster 2")
    assert ">0.75<" in picture.svg and ">0.25<" not in picture.svg, "kept edges have weights"
    assert picture.svg.count("stroke-width: 3;") == 2, "the widest edge, in both panels"
    (empty,) = FIGURES["graph"](replace(results, rows=[replace(rows[0], results={})]), figure)
    assert empty is None


def test_a_curve_of_some_points_alone(tmp_path: Path) -> None:
    results = written(tmp_path, """
summary = "x"
[[axes]]
name = "queue"
values = { "train.batch_size" = [8, 16, 32] }
columns = { size = [1, 2, 3], first = [5, 5, 5] }
[[figures]]
type = "curve"
x = "first"
lines = "size"
where = { size = [1, 3] }
""")  # fmt: skip
    lines: Sequence[Line] = [
        Line(point, point.label, "s", 1.0, None, 1) for point in results.points
    ]
    vars(results)["tables"] = {"s": lines}
    (picture,) = FIGURES["curve"](results, results.definition.study.figures[0])
    assert picture is not None and picture.alt.endswith("s from 1 to 1 by first, 1, 3")
