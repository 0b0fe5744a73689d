"""The table of a run, and of one that goes on."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from cse_reporters.csv_reporter import CsvReporter
from cse_reporters.options import CsvOptions, TensorboardOptions
from pydantic import ValidationError

from cse_core.options import Options


def test_csv_has_a_column_for_each_key(tmp_path: Path) -> None:
    lines = [{"step": 1.0, "loss": 2.5}, {"step": 2.0, "loss": 2.0, "dev.a": 61.0}, {"step": 3.0}]
    reporter = CsvReporter(CsvOptions())
    reporter.start(tmp_path, {})
    reporter.begin(0, 3, 0)
    for line in lines:
        reporter.line(line)
    assert rows(tmp_path) == [
        {"step": "1.0", "loss": "2.5", "dev.a": ""},
        {"step": "2.0", "loss": "2.0", "dev.a": "61.0"},
        {"step": "3.0", "loss": "", "dev.a": ""},
    ]


def test_csv_of_a_run_that_goes_on(tmp_path: Path) -> None:
    """Lines after the checkpoint are made again, as those of metrics.jsonl are."""
    before = [{"step": step, "round": 1, "loss": step / 2} for step in (1, 2, 3)]
    text = "".join(f"{json.dumps(line)}\n" for line in before)
    (tmp_path / "metrics.jsonl").write_text(text)
    reporter = CsvReporter(CsvOptions(file="table.csv"))
    reporter.start(tmp_path, {})
    reporter.begin(1, 4, 2)
    reporter.line({"step": 3, "round": 1, "loss": 9.0})
    reporter.begin(2, 4, 0)
    reporter.line({"step": 1, "round": 2, "loss": 8.0})
    found = [(each["round"], each["step"], each["loss"]) for each in rows(tmp_path, "table.csv")]
    assert found == [("1", "1", "0.5"), ("1", "2", "1.0"), ("1", "3", "9.0"), ("2", "1", "8.0")]


def rows(folder: Path, name: str = "metrics.csv") -> list[dict[str, str]]:
    with (folder / name).open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", ["run.toml", "metrics.jsonl", "model", "..", ".lock", "a/b"])
@pytest.mark.parametrize(
    ("options", "field"), [(CsvOptions, "file"), (TensorboardOptions, "folder")]
)
def test_no_reporter_writes_where_the_run_does(
    options: type[Options], field: str, name: str
) -> None:
    with pytest.raises(ValidationError, match=field):
        options.model_validate({field: name})
