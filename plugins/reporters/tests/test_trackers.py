"""Tracked runs: what a tracker is given, one that goes on, and what is said where none can be."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cse_reporters.options import TrackerOptions, WandbOptions
from cse_reporters.trackers import TrackerReporter, WandbReporter, flat

import cse
from cse_core.errors import CseError
from tests.fixtures.methods import refusal
from tests.fixtures.tiny import sentences

INSTALL = "pip install 'cse-reporters[trackers]'"
SETTINGS = {"name": "simcse", "train": {"lr": 3e-5, "dev": ["a.tsv"]}, "model": {"name": "tiny"}}


class Notebook:
    """What a tracker of accelerate is asked, written down."""

    def __init__(self, name: str, new: bool) -> None:
        self.asked: list[Any] = [("made", name, new)]

    def start(self) -> None:
        print("a tracker's own words")

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        self.asked.append(("settings", values))

    def log(self, values: dict[str, float], step: int) -> None:
        self.asked.append((step, values))

    def finish(self) -> None:
        self.asked.append("finished")


class NotebookReporter(TrackerReporter):
    package = "json"

    def __init__(self, options: TrackerOptions) -> None:
        super().__init__(options)
        self.asked: list[Any] = []

    def tracker(self, name: str, new: bool) -> Any:
        made = Notebook(name, new)
        self.asked = made.asked = [*self.asked, *made.asked]
        return made


@pytest.fixture
def reporter(monkeypatch: pytest.MonkeyPatch) -> NotebookReporter:
    pytest.importorskip("accelerate", reason=f"accelerate is not installed; {INSTALL}")
    return NotebookReporter(TrackerOptions())


def kept(folder: Path, *lines: dict[str, float]) -> None:
    """Write lines to the metrics of a run, as the trainer does before a reporter hears them."""
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / "metrics.jsonl").write_text(text, encoding="utf-8")


def test_settings_by_path() -> None:
    assert flat(SETTINGS) == {
        "name": "simcse",
        "train.lr": 3e-5,
        "train.dev": '["a.tsv"]',
        "model.name": "tiny",
    }


def test_lines_under_their_names_with_steps_over_all_rounds(
    tmp_path: Path, reporter: NotebookReporter, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    reporter.start(folder, SETTINGS)
    for number, steps in ((1, 2), (2, 3)):
        reporter.begin(number, steps, 0)
        reporter.line({"step": 2, "round": number, "loss": 1.5, "news.dev.recall@5": 61.25})
        reporter.end()
    line = {"loss": 1.5, "news.dev.recall@5": 61.25}
    assert reporter.asked == [
        ("made", "mine", True),
        ("settings", flat(SETTINGS)),
        (2, {**line, "round": 1}),
        "finished",
        ("made", "mine", False),
        (4, {**line, "round": 2}),
        "finished",
    ]
    assert capsys.readouterr().out == ""


def test_a_run_that_goes_on_tracks_no_line_twice(
    tmp_path: Path, reporter: NotebookReporter
) -> None:
    lines = [{"step": step, "round": 0, "loss": 4.0 - step} for step in (1, 2, 3)]
    reporter.start(tmp_path, SETTINGS)
    reporter.begin(0, 4, 0)
    for line in lines:
        reporter.line(line)
    kept(tmp_path, *lines)
    again = NotebookReporter(TrackerOptions(name="given"))
    again.start(tmp_path, SETTINGS)
    again.begin(0, 4, 1)
    for line in [*lines[1:], {"step": 4, "round": 0, "loss": 0.0}]:
        again.line(line)
    assert again.asked == [("made", "given", False), (4, {"loss": 0.0})]
    assert again._tracked.id == reporter._tracked.id


def test_what_a_tracker_lacks_is_sent_again(tmp_path: Path, reporter: NotebookReporter) -> None:
    lines: list[dict[str, float]] = [{"step": step, "round": 0} for step in (1, 2, 3)]
    reporter.start(tmp_path, SETTINGS)
    reporter.begin(0, 4, 0)
    reporter.line(lines[0])  # the tracker failed then
    kept(tmp_path, *lines)
    again = NotebookReporter(TrackerOptions())
    again.start(tmp_path, SETTINGS)
    again.begin(0, 4, 2)
    again.line(lines[2])
    assert [asked[0] for asked in again.asked] == ["made", 2, 3]


def test_a_run_in_the_folder_of_one_that_was_replaced_is_new(
    tmp_path: Path, reporter: NotebookReporter
) -> None:
    for _ in range(2):
        reporter.start(tmp_path, SETTINGS)
        reporter.begin(0, 4, 0)
        reporter.line({"step": 3, "round": 0, "loss": 1.0})
    assert [asked[0] for asked in reporter.asked] == ["made", "settings", 3] * 2


def test_without_the_tracker_a_run_does_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoder: str
) -> None:
    data = tmp_path / "texts.txt"
    data.write_text("\n".join(sentences(16)), encoding="utf-8")
    for name in ("wandb", "mlflow", "trackio"):
        monkeypatch.setitem(sys.modules, name, None)
        run: Any = {"model": encoder, "data": data, "out": tmp_path / "run", "quiet": True}
        line = refusal(cse.train, report=name, **run)
        assert line.startswith(f"train.report: the reporter {name} needs accelerate and {name}: ")
        assert line.endswith(f"; pip install 'accelerate>=1.10' {name}")
        assert not (tmp_path / "run").exists()


def test_without_a_key_wandb_is_refused_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("accelerate", reason=f"accelerate is not installed; {INSTALL}")

    asked: dict[str, Any] = {}
    wandb = SimpleNamespace(
        setup=lambda: SimpleNamespace(settings=SimpleNamespace(mode="online")),
        login=lambda **named: bool(asked.update(named)),
    )
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    with pytest.raises(CseError, match="no key of Weights & Biases.*wandb:offline=true"):
        WandbReporter(WandbOptions())
    assert asked["prompt"] is False
    WandbReporter(WandbOptions(offline=True))
