"""Reporters beside the caller's: told the same, made at the start, never in the way."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cse_core.builtins.csv_reporter import CsvReporter
from cse_core.builtins.options import CsvOptions
from cse_core.runtime.reporter import Reporter
from cse_core.training.reporters import Reporters


class Ears(Reporter):
    def __init__(self, fails_in: str = "") -> None:
        self.heard: list[str] = []
        self.fails_in = fails_in

    def _hear(self, what: str) -> None:
        self.heard.append(what)
        if what == self.fails_in:
            raise OSError("the disk is full")

    def start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self._hear("start")

    def step(self, step: int) -> None:
        self._hear(f"step {step}")

    def warning(self, text: str) -> None:
        self._hear(f"warning {text}")


def test_others_hear_from_the_start_on() -> None:
    own, other = Ears(), Ears()
    both = Reporters(own, {"other": lambda: other})
    both.step(1)
    both.start(Path(), {})
    both.step(2)
    assert own.heard == ["step 1", "start", "step 2"]
    assert other.heard == ["start", "step 2"]


def test_one_that_fails_is_left_out_with_one_warning() -> None:
    own, bad, good = Ears(), Ears("step 1"), Ears()
    all_ = Reporters(own, {"bad": lambda: bad, "good": lambda: good})
    all_.start(Path(), {})
    all_.step(1)
    all_.step(2)
    warning = "warning reporter bad failed and hears nothing more: OSError: the disk is full"
    assert own.heard == ["start", "step 1", warning, "step 2"]
    assert bad.heard == ["start", "step 1"]
    assert good.heard == ["start", "step 1", "step 2"]


def test_one_that_cannot_be_made_is_left_out() -> None:
    own = Ears()
    all_ = Reporters(own, {"none": lambda: Ears(1 / 0)})  # type: ignore[arg-type]
    all_.start(Path(), {})
    assert own.heard[0].startswith("warning reporter none failed")


def test_the_callers_own_may_fail() -> None:
    all_ = Reporters(Ears("step 1"), {})
    with pytest.raises(OSError, match="full"):
        all_.step(1)


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
