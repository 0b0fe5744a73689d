"""Events of a run, of one that goes on, of one with rounds; what is said without tensorboard."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from cse_reporters.options import TensorboardOptions
from cse_reporters.tensorboard_reporter import TensorboardReporter

import cse
from cse_core.errors import CseError
from tests.fixtures.tiny import sentences


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    read: Any = events.EventAccumulator(str(folder))
    read.Reload()
    return {
        tag: [(each.step, each.value) for each in read.Scalars(tag)]
        for tag in read.Tags()["scalars"]
    }


def test_a_scalar_for_each_key_and_a_folder_for_each_round(tmp_path: Path) -> None:
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


def test_steps_after_the_checkpoint_are_made_again(tmp_path: Path) -> None:
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


def test_without_tensorboard_a_run_does_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoder: str
) -> None:
    for name in [name for name in sys.modules if name.startswith("torch.utils.tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    data = tmp_path / "texts.txt"
    data.write_text("\n".join(sentences(16)), encoding="utf-8")
    with pytest.raises(CseError) as caught:
        cse.train(model=encoder, data=data, report="tensorboard", out=tmp_path / "run", quiet=True)
    line = str(caught.value)
    assert line.startswith("train.report: the reporter tensorboard needs tensorboard: ")
    assert line.endswith("; pip install 'tensorboard>=2.20'") and "\n" not in line
    assert not (tmp_path / "run").exists()
