"""Lists of an output as tables of a page, and figures of some points alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cse_study.definition.reading import Definition, read_study
from cse_study.execution.folder import StudyFolder
from cse_study.pages.study_results import Results
from cse_study.results.rows import Row
from cse_study.results.table import Line

pytest.importorskip("jinja2", reason="pages need jinja2; pip install jinja2 matplotlib")
pytest.importorskip("matplotlib", reason="pages need matplotlib; pip install jinja2 matplotlib")
from cse_study.pages.study_figures import FIGURES
from cse_study.pages.texts import text_tables


def written(folder: Path, text: str) -> Definition:
    file = folder / "mine.toml"
    file.write_text(text, encoding="utf-8")
    return read_study(file)


def test_lists_of_an_output(tmp_path: Path) -> None:
    found = written(tmp_path, """
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
            for point, output in zip(found.points, outputs, strict=True)]  # fmt: skip
    results = Results(found, found.points, rows, {}, StudyFolder(tmp_path), None)
    tables = text_tables(results, found.study.figures[0])
    assert [table.caption for table in tables] == ["1: sentences", "1: rounds.0.pairs",
                                                   "2: sentences"]  # fmt: skip
    assert tables[0].rows == [["0", "one"], ["1", "two"]]
    assert tables[1].rows == [["0", "a; b"], ["1", "c; -"]]
    assert tables[2].heads == ["", "text", "near"]
    assert tables[2].rows == [["0", "t", "0.5, u; 0.25, v"]]


def test_a_curve_of_some_points_alone(tmp_path: Path) -> None:
    found = written(tmp_path, """
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
    lines = [Line(point, point.label, "s", 1.0, None, 1) for point in found.points]
    results = Results(found, found.points, [], {"s": lines}, StudyFolder(tmp_path), None)
    (picture,) = FIGURES["curve"](results, found.study.figures[0])
    (without,) = FIGURES["curve"](
        results, found.study.figures[0].model_copy(update={"where": {"size": [1, 2, 3]}})
    )
    assert len(picture.svg) < len(without.svg)
