"""A whole run: from a text file to a model folder, and on from a checkpoint."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
import torch
from cse_testkit import compose, installed_registry, tiny_corpus, write_corpus

from cse_cli.models.saved_model import load
from cse_core.runtime.reporter import Reporter
from cse_core.training.checkpoint import Checkpoint
from cse_core.training.run import resume, train
from cse_core.training.run_folder import RunFolder
from cse_core.training.signals import Stopped


class Stopping(Reporter):
    """Asks the run to stop after a step."""

    def __init__(self, after: int) -> None:
        self.after = after

    def step(self, done: int) -> None:
        if done == self.after:
            signal.raise_signal(signal.SIGTERM)


def last(run: Path) -> Checkpoint:
    return Checkpoint.read(RunFolder(run).checkpoints()[-1])


def test_from_a_file_to_a_model(tmp_path: Path) -> None:
    corpus = tiny_corpus()
    file = write_corpus(corpus, tmp_path / "rows.csv")
    sets = [f"data.path=[{file}]", "train.max_steps=4", "train.device=cpu"]
    composition = compose(recipe="esimcse", corpus=corpus, sets=sets)
    run = tmp_path / "run"
    train(composition, installed_registry(), out=run, reporter=Reporter())
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    assert lines[0]["infonce.negatives"] <= 3.0 < lines[1]["infonce.negatives"]
    manifest = json.loads((run / "model" / "cse.json").read_text(encoding="utf-8"))
    assert manifest["heads"] == [], "the head was there for training alone"
    model = load(str(run), installed_registry())
    plain = "Anna paints the boat."
    one, other = (torch.as_tensor(model.encode([text])) for text in (plain, plain))
    assert torch.equal(one, other), "nothing is repeated when texts are encoded"


@pytest.mark.parametrize("stop", [1, 5])
def test_a_stopped_run_goes_on_as_if_nothing_had_happened(stop: int, tmp_path: Path) -> None:
    """Queue, ages, rows, average, optimiser and weights: bit for bit.

    The queue is not full yet after the first step and has let keys go after the fifth; the eighth
    batch is one of two rows.
    """
    corpus, registry = tiny_corpus(30), installed_registry()
    file = write_corpus(corpus, tmp_path / "rows.csv")
    sets = [
        *(f"data.path=[{file}]", "train.dev=[none]", "train.device=cpu", "train.max_steps=9"),
        *("negatives.momentum-queue.size=10", "train.log_steps=3"),
    ]
    composition = compose(recipe="esimcse", corpus=corpus, sets=sets)
    train(composition, registry, out=tmp_path / "whole", reporter=Reporter())
    with pytest.raises(Stopped):
        train(composition, registry, out=tmp_path / "halted", reporter=Stopping(stop))
    assert last(tmp_path / "halted").values["step"] == stop
    resume(tmp_path / "halted", registry, reporter=Reporter())
    one, other = last(tmp_path / "whole"), last(tmp_path / "halted")
    assert one.values["step"] == other.values["step"] == 9
    assert one.values["parts"] == other.values["parts"]
    assert one.tensors.keys() == other.tensors.keys()
    for name, value in one.tensors.items():
        assert torch.equal(value, other.tensors[name]), name
    kept = {name: one.tensors[f"part.negatives.momentum-queue.{name}"] for name in ("row", "age")}
    assert len(kept["row"]) == 10 and kept["age"].tolist() == [3, 3, 3, 3, 2, 2, 1, 1, 1, 1]
    assert any(name.startswith("part.branch.") for name in one.tensors)
