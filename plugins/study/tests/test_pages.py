"""Pages: one file that needs nothing else, readable without colour, with every number in words."""

from __future__ import annotations

import hashlib
import html
import json
import math
import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from cse_study.definition.reading import read_study
from cse_study.execution.folder import StudyFolder, write_json
from cse_study.execution.jobs import Scoring
from cse_study.pages.charts import box_picture, scatter_picture
from cse_study.pages.drawing import Look, Series, alone
from cse_study.pages.grouping import find_key, groups_of, over_steps
from cse_study.pages.lines import lines_picture, log_places
from cse_study.pages.run_files import read_run
from cse_study.pages.run_pictures import pairs_of, spectrum_picture
from cse_study.pages.study_page import study_page, study_pictures
from cse_study.pages.study_results import Results
from cse_study.planning.plan import Wish, plan_study
from cse_study.results.markdown import page_of
from cse_study.results.rows import rows_of
from cse_study.results.table import tables_of

from tests.fixtures.command_line import Cse, refused

pytest.importorskip("jinja2", reason="pages need jinja2; pip install jinja2 matplotlib")
pytest.importorskip("matplotlib", reason="pages need matplotlib; pip install jinja2 matplotlib")
GOLD = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


class Tags(HTMLParser):
    """What a page consists of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def check(text: str) -> None:
    """Check what holds of every page."""
    tags = Tags(text).found
    names = Counter(tag for tag, _ in tags)
    assert not {"script", "link", "iframe", "img", "image"} & names.keys()
    for tag, attributes in tags:
        for name, value in attributes.items():
            if name in ("href", "xlink:href", "src"):
                assert str(value).startswith("#"), (tag, value)
    assert "@import" not in text and "url(http" not in text
    ids = Counter(attributes["id"] for _, attributes in tags if "id" in attributes)
    assert ids.most_common(1)[0][1] == 1
    assert names["svg"] == names["desc"]
    # The ink of pictures is that of the page, dark or light.
    assert "#000000" not in text.partition("</style>")[2]


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


def test_each_of_eight_things_has_a_look_of_its_own() -> None:
    looks = [Look.of(number) for number in range(8)]
    for name in ("colour", "marker", "hatch"):
        assert len({getattr(look, name) for look in looks}) == 8
    assert len({str(look.dashes) for look in looks}) == 8
    # Beyond eight, lines and boxes still differ without colour.
    many = [Look.of(number) for number in range(64)]
    assert len({(look.marker, str(look.dashes)) for look in many}) == 64
    assert len({(look.marker, look.hatch) for look in many}) == 64


def contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("paper", ["#ffffff", "#14171a"])
def test_colours_can_be_told_from_paper_and_from_dark(paper: str) -> None:
    assert all(contrast(Look.of(number).colour, paper) >= 3 for number in range(8))


def test_runs_of_equal_settings_are_one_line_with_its_spread(runs: list[Path]) -> None:
    groups = groups_of([read_run(path) for path in runs])
    assert [(group.label, group.seeds) for group in groups] == [("a", 2), ("b-1", 1)]
    first, second = over_steps(groups, "starter.dev.spearman")
    assert first.y[-1] == 61.0 and first.seeds[-1] == 2
    assert first.spread[-1] == pytest.approx(math.sqrt(2))
    assert second.spread[-1] is None


def test_runs_of_other_texts_are_not_one_line(runs: list[Path]) -> None:
    for number, path in enumerate(runs[:2]):
        with (path / "run.toml").open("a") as file:
            file.write(f'fingerprint = "sha256:{number}"\n')
    assert [group.seeds for group in groups_of([read_run(path) for path in runs])] == [1, 1, 1]


def test_what_changes_no_weight_may_differ_in_one_line(runs: list[Path]) -> None:
    record = runs[1] / "run.toml"
    record.write_text(record.read_text().replace("[run.data]", 'report = ["csv"]\n[run.data]'))
    assert [group.seeds for group in groups_of([read_run(path) for path in runs])] == [2, 1]


def test_a_loss_that_is_no_number_leaves_a_gap(runs: list[Path], tmp_path: Path, cse: Cse) -> None:
    with (runs[2] / "metrics.jsonl").open("a") as file:
        file.write('{"step": 22, "round": 0, "loss": NaN}\n')
    (series,) = over_steps(groups_of([read_run(runs[2])]), "loss")
    assert series.x[-1] == 20
    out = tmp_path / "p.html"
    assert cse("plot", str(runs[2]), "--show", "loss", "--out", str(out)).code == 0


@pytest.mark.parametrize("name", ["lr$5e^$x", "$a$", "_hidden", "<b>&", "中文 😀"])
def test_names_are_drawn_as_they_are(tmp_path: Path, cse: Cse, name: str) -> None:
    paths = [made(tmp_path / each, 1, level) for each, level in ((name, 40.0), ("other", 30.0))]
    out = tmp_path / "p.html"
    made(tmp_path / "third", 1, 20.0, "b")
    found = cse("plot", *map(str, paths), "--out", str(out), "--show", "loss,alignment")
    assert found.code == 0 and "Warning" not in found.err
    svg = "".join(re.findall(r"<svg.*?</svg>", out.read_text(), flags=re.DOTALL))
    assert f"{html.escape(name, quote=False)}</text>" in svg


def test_vectors_with_a_singular_value_of_zero() -> None:
    picture = spectrum_picture({"x.test": {"run": [1.0, 0.5, 0.0]}})
    assert picture is not None and picture.rows


def test_pairs_of_a_file_that_was_written_again_are_not_drawn(
    runs: list[Path], tmp_path: Path
) -> None:
    file = tmp_path / "pairs.tsv"
    for path, cosine in ((runs[0], 0.5), (runs[2], 0.9)):
        file.write_text(f"set\tgold\tcosine\tsentence1\nx\t1.0\t{cosine}\ta\n")
        line = {"options": {"pairs_out": str(file)}, "encoder": "", "results": {},
                "pairs_sha256": hashlib.sha256(file.read_bytes()).hexdigest()}  # fmt: skip
        (path / "evaluations.jsonl").write_text(f"{json.dumps(line)}\n")
    found = pairs_of(groups_of([read_run(path) for path in runs]))
    assert list(found["x"]) == ["b-1"]


def test_one_seed_twice_is_no_spread(tmp_path: Path) -> None:
    paths = [made(tmp_path / name, 1, 40.0) for name in ("x", "y")]
    assert [group.seeds for group in groups_of([read_run(path) for path in paths])] == [1, 1]


def test_steps_of_rounds_follow_each_other(tmp_path: Path) -> None:
    folder = made(tmp_path / "x", 1, 40.0)
    lines = [{"step": s, "round": r, "loss": 1.0} for r in (1, 2) for s in (5, 10)]
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (series,) = over_steps(groups_of([read_run(folder)]), "loss")
    assert list(series.x) == [5, 10, 15, 20]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("dev", "starter.dev.spearman"),
        ("uniformity", "starter.dev.uniformity"),
        ("loss", "loss"),
        ("queue.age", "infonce.negatives.queue.age"),
        ("nothing", None),
    ],
)
def test_short_names_of_metrics(runs: list[Path], name: str, key: str | None) -> None:
    assert find_key(read_run(runs[0]), name) == key


def test_numbers_are_in_the_words_and_the_table() -> None:
    series = [
        Series("ours", [64, 128, 256], [60.0, 61.5, None], [0.5, 0.25, None], [3, 3, 0]),
        Series("paper", [64, 128, 256], [70.0, 71.0, 72.0], paper=True),
    ]
    picture = lines_picture("Queue", {"sts": series}, "queue")
    assert picture is not None
    assert "ours from 60.00 at 64 to 61.50 at 128" in picture.alt
    assert picture.heads == ["queue", "sts: ours", "sts: paper"]
    assert picture.rows[0] == ["64", "60.00 ± 0.50 (n = 3)", "70.00"]
    assert picture.rows[2] == ["256", "-", "72.00"]
    assert "<title>Queue</title>" in picture.svg and picture.alt in picture.svg
    assert lines_picture("Nothing", {"sts": [Series("x", [1], [None])]}, "x") is None


def test_points_that_double_stand_on_a_logarithmic_axis() -> None:
    assert log_places([64, 128, 256, 512, 1024])
    assert not log_places([1, 2, 3, 4])
    assert not log_places([0, 64, 128])


def test_many_points_have_their_correlation() -> None:
    points = [(float(n), 2.0 * n, "") for n in range(40)]
    picture = scatter_picture("Many", {"x": points}, "a", "b")
    assert picture is not None and "40 points, correlation 1.00" in picture.alt


def test_the_page_of_runs(runs: list[Path], tmp_path: Path, cse: Cse) -> None:
    out = tmp_path / "page/runs.html"
    found = cse("plot", *map(str, runs), "--out", str(out), "--json", "--show",
                "loss,dev,spread,alignment,negatives,spectrum,gold")  # fmt: skip
    assert json.loads(found.out)["pictures"] == [
        "Loss", "Dev scores", "Spread of the vectors", "Negatives that an anchor saw",
        "Age of the negatives", "Alignment against uniformity",
    ]  # fmt: skip
    text = out.read_text()
    check(text)
    assert "61.00 ± 1.41 (n = 2)" in text and "No test was made of these differences" in text


def test_folders_hold_runs(runs: list[Path], tmp_path: Path, cse: Cse) -> None:
    out = tmp_path / "p.html"
    found = cse("plot", str(tmp_path), "--out", str(out), "--show", "loss", "--json")
    assert len(json.loads(found.out)["runs"]) == 3


def test_mistakes(runs: list[Path], tmp_path: Path, cse: Cse) -> None:
    refused(cse("plot"), "names no run")
    refused(cse("plot", str(runs[0]), "--show", "los"), "no such picture", "did you mean loss?")
    refused(cse("plot", str(tmp_path / "none"), "--out", str(tmp_path / "new/p.html")), "no such")
    assert not (tmp_path / "new").exists()
    refused(cse("plot", str(runs[0] / "model")), "no such folder")
    (tmp_path / "empty").mkdir()
    refused(cse("plot", str(tmp_path / "empty")), "there are no runs")
    refused(cse("plot", str(runs[0]), "--show", ","), "names no picture")
    record = runs[0] / "run.toml"
    refused(cse("plot", str(runs[0]), "--out", str(record)), "holds something else than a page")
    assert record.read_text().startswith("name = ")
    refused(cse("plot", str(runs[0]), "--show", "loss", "--out", str(tmp_path)), "is a folder")


def test_a_missing_library_is_one_line(
    runs: list[Path], cse: Cse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    refused(cse("plot", str(runs[0])), "pages need jinja2", "pip install jinja2 matplotlib")


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
type = "density"
x = "cosine"
lines = "gold"
[[figures]]
type = "spectrum"
[[figures]]
type = "histogram"
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A study whose runs and scores were made up, but for its plan."""
    place = tmp_path_factory.mktemp("study")
    (place / "batches.toml").write_text(STUDY)
    definition = read_study(place / "batches.toml")
    plan = plan_study(definition, Wish())
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
        write_json(folder.scores(cell.run.key, scoring.key),
                   {"encoder": "pooling mean", "results": about})  # fmt: skip
        rows = ["set\tgold\tcosine\tsubset\tsentence1\tsentence2"]
        rows += [
            f"starter.test\t{gold}\t{gold / 6 + n / 40 + cell.seed / 100}\t\t\"a\tb"
            for gold in GOLD for n in range(5)
        ]  # fmt: skip
        folder.pairs(cell.run.key, scoring.key).write_text("\n".join(rows) + "\n")
    rows_ = rows_of(plan, folder, scoring)
    tables = tables_of(definition, plan.points, rows_, folder, scoring)
    return Results(definition, plan.points, rows_, tables, folder, scoring)


def test_the_page_of_a_study(results: Results) -> None:
    page = study_page(results)
    text = page.html()
    check(text)
    titles = [picture.title for section in page.sections for picture in section.pictures]
    assert titles == [
        "starter.test.spearman by batch",
        "starter.test: seeds of each batch",
        "dev, loss, uniformity over steps",
        "starter.test.spearman by distance",
        "starter.test.uniformity by alignment",
        "Cosine by gold score: starter.test",
        "Cosines in groups of gold scores: starter.test",
        "Spectrum of the vectors",
        "How large a batch is",
        "Loss",
        "Dev score",
    ]
    assert re.search(r"56\.50 ± 0\.25 \(n = 3\)", text)
    assert "95% interval" in text and "corrected by Holm" in text
    curve = page.sections[1].pictures[0]
    assert list(curve.heads) == ["batch"] + [
        f"starter.test.spearman: {name}" for name in ("slow", "paper, slow", "fast", "paper, fast")
    ]
    assert [row[2] for row in curve.rows] == ["70.00", "72.00", "73.00"]
    assert [row[4] for row in curve.rows] == ["71.00", "-", "74.00"]


def test_figures_stand_beside_a_page_of_markdown(results: Results) -> None:
    drawn = study_pictures(results)
    files = {f"batches-{number}.svg": each.title for number, each in enumerate(drawn, 1)}
    page = page_of(results.definition, [], results.rows, "cse study batches.toml", files)
    assert len(drawn) == 9
    assert "![starter.test.spearman by batch](batches-1.svg)" in page
    root = ElementTree.fromstring(alone(drawn[0]))
    style = root.find("{http://www.w3.org/2000/svg}style")
    assert style is not None and "prefers-color-scheme:dark" in str(style.text)
    assert "currentColor" in drawn[0].svg


def test_what_is_missing_is_said(results: Results, tmp_path: Path) -> None:
    empty = Results(
        results.definition, results.points, [], {"starter.test": []}, results.folder, None
    )
    text = study_page(empty).html()
    check(text)
    assert "There are no numbers for the figure &#39;curve&#39; yet." in text


def test_diagrams_are_drawn_from_plans(tmp_path: Path, cse: Cse) -> None:
    from cse_study.pages.diagram import plan_picture

    words = ("train", "--aug", "fgsm", "--negatives", "queue", "--loss", "twins", "--dry-run")
    plan: dict[str, Any] = json.loads(cse(*words, "--json").out)
    picture = plan_picture("Plan", plan)
    for word in ("negatives.queue", "positive by ema", "identical", "changed by aug.fgsm"):
        assert word in picture.svg
    assert "view positive of text, encoded by online, changed by aug.fgsm" in picture.alt
    assert len(picture.rows) == len(plan["passes"])


def test_the_names_of_many_boxes_stand_apart_in_a_small_picture() -> None:
    groups = {f"a method with a long name {each}": [1.0, 2.0, 4.0] for each in range(20)}
    picture = box_picture("seeds", groups, "method", "score")
    assert picture is not None and len(picture.svg) < 150_000
    named = r' y="(\S+)"[^>]*>a method with a long name \d+, n = 3<'
    heights = sorted(float(found) for found in re.findall(named, picture.svg))
    assert len(heights) == 20
    assert min(below - above for above, below in pairwise(heights)) > 10  # of the font: 10
