"""The table and the events of a run, and of one that continues."""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from cse_reporters.files import CsvReporter, TensorboardReporter
from cse_reporters.options import CsvOptions, TensorboardOptions
from pydantic import ValidationError

from tests.fixtures.methods import refusal


def rows(folder: Path, name: str = "metrics.csv") -> list[dict[str, str]]:
    with (folder / name).open(newline="") as file:
        return list(csv.DictReader(file))


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    read: Any = events.EventAccumulator(str(folder))
    read.Reload()
    return {
        tag: [(each.step, each.value) for each in read.Scalars(tag)]
        for tag in read.Tags()["scalars"]
    }


def test_csv_has_a_column_for_each_key(tmp_path: Path) -> None:
    reporter = CsvReporter(CsvOptions())
    reporter.start(tmp_path, {})
    reporter.begin(0, 3, 0)
    for line in ({"step": 1.0, "loss": 2.5}, {"step": 2.0, "loss": 2.0, "dev.a": 61.0},
                 {"step": 3.0}):  # fmt: skip
        reporter.line(line)
    assert rows(tmp_path) == [
        {"step": "1.0", "loss": "2.5", "dev.a": ""},
        {"step": "2.0", "loss": "2.0", "dev.a": "61.0"},
        {"step": "3.0", "loss": "", "dev.a": ""},
    ]


def test_csv_of_a_run_that_continues(tmp_path: Path) -> None:
    """Lines after the checkpoint are made again, as those of metrics.jsonl are."""
    before = [{"step": step, "round": 1, "loss": step / 2} for step in (1, 2, 3)]
    text = "".join(f"{json.dumps(line)}\n" for line in before)
    (tmp_path / "metrics.jsonl").write_text(text + '{"step": 4, "rou')
    reporter = CsvReporter(CsvOptions(file="table.csv"))
    reporter.start(tmp_path, {})
    reporter.begin(1, 4, 2)
    reporter.line({"step": 3, "round": 1, "loss": 9.0})
    reporter.begin(2, 4, 0)
    reporter.line({"step": 1, "round": 2, "loss": 8.0})
    found = [(each["round"], each["step"], each["loss"]) for each in rows(tmp_path, "table.csv")]
    assert found == [("1", "1", "0.5"), ("1", "2", "1.0"), ("1", "3", "9.0"), ("2", "1", "8.0")]


def test_no_reporter_writes_where_the_run_does() -> None:
    for name in ("run.toml", "metrics.jsonl", "model", "..", ".lock", "a/b", "tracked-wandb.json"):
        with pytest.raises(ValidationError, match="file"):
            CsvOptions(file=name)
        with pytest.raises(ValidationError, match="folder"):
            TensorboardOptions(folder=name)


def test_events_have_a_scalar_for_each_key_and_a_folder_for_each_round(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    reporter = TensorboardReporter(TensorboardOptions())
    reporter.start(tmp_path, {})
    for number in (1, 2):
        reporter.begin(number, 2, 0)
        reporter.line({"step": 1, "round": number, "loss": 2.5 * number})
        reporter.line({"step": 2, "round": number, "loss": 1.5, "news.dev.recall@5": 61.25})
        reporter.end()
    found = scalars(tmp_path / "tensorboard/round-2")
    assert found == {"loss": [(1, 5.0), (2, 1.5)], "news.dev.recall@5": [(2, 61.25)]}
    assert scalars(tmp_path / "tensorboard/round-1")["loss"] == [(1, 2.5), (2, 1.5)]


def test_events_after_the_checkpoint_are_made_again(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    for done, losses in ((0, {1: 4.0, 2: 3.0, 3: 2.0}), (1, {2: 8.0, 3: 7.0})):
        reporter = TensorboardReporter(TensorboardOptions(folder="events"))
        reporter.start(tmp_path, {})
        reporter.begin(0, 3, done)
        for step, loss in losses.items():
            reporter.line({"step": step, "round": 0, "loss": loss})
        # A run that is killed ends nothing: what it wrote is there.
        assert scalars(tmp_path / "events")["loss"][-1] == (step, loss)
        reporter.end()
    assert scalars(tmp_path / "events")["loss"] == [(1, 4.0), (2, 8.0), (3, 7.0)]


def test_without_tensorboard(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("torch.utils.tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    line = refusal(TensorboardReporter, TensorboardOptions())
    assert line.startswith("train.report: the reporter tensorboard needs tensorboard: ")
    assert line.endswith("; pip install 'tensorboard>=2.20'")
