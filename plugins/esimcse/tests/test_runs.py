"""A whole run: from a text file to a model folder, and on from a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from cse_core.inference import load
from cse_core.reporting import Reporter
from cse_core.testing import compose, installed_registry, tiny_corpus, write_corpus
from cse_core.training import train


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
