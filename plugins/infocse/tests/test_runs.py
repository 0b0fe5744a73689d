"""Whole runs: rounds follow one another, resume bit for bit, and can be looked at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cse_infocse.idc import Idc
from cse_testkit import compose, installed_registry, tiny_corpus, write_corpus
from safetensors.torch import load_file

from cse_core.runtime.reporter import Reporter
from cse_core.training.loop import TrainingLoop
from cse_core.training.run import resume, train
from cse_core.training.signals import Stopped
from cse_core.training.trainer import Trainer

SETS = ("train.epochs=1", "train.device=cpu", "train.save_steps=2", "train.chunk_size=none")


def begin(folder: Path, name: str, *sets: str, recipe: str = "infocse") -> Path:
    corpus = tiny_corpus(columns=("document", "title"))
    file = write_corpus(corpus, folder / "rows.csv")
    composition = compose(recipe=recipe, corpus=corpus, sets=[f"data.path=[{file}]", *SETS, *sets])
    train(composition, installed_registry(), out=folder / name, reporter=Reporter())
    return folder / name


def rounds(run: Path) -> list[bytes]:
    folders = sorted((run / "rounds").iterdir(), key=lambda each: int(each.name))
    return [(folder / "pairs.parquet").read_bytes() for folder in folders]


def weights(run: Path) -> dict[str, Any]:
    return load_file(run / "model" / "model.safetensors")


def test_a_run_resumes_bit_for_bit_and_never_mines_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = begin(tmp_path, "whole")
    assert len(rounds(whole)) == 4, "one of neighbours, three of clusters"
    count = {"mined": 0}
    log, mine = Trainer._log, Idc.mine_round

    def stop(self: Trainer, loop: TrainingLoop, *rest: Any) -> None:
        log(self, loop, *rest)
        if loop.current.number == 2 and loop.done == 1:
            self._signals.asked = True

    def counted(self: Idc, ctx: Any) -> Any:
        count["mined"] += 1
        return mine(self, ctx)

    monkeypatch.setattr(Idc, "mine_round", counted)
    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "_log", stop)
        with pytest.raises(Stopped):
            begin(tmp_path, "parts")
    assert count["mined"] == 1
    resume(tmp_path / "parts", installed_registry(), reporter=Reporter())
    assert count["mined"] == 3, "round 2 was read, rounds 3 and 4 were mined"
    assert rounds(tmp_path / "parts") == rounds(whole)
    one, two = weights(whole), weights(tmp_path / "parts")
    assert all(bool((one[name] == two[name]).all()) for name in one)


def test_fine_tuning_saves_how_documents_are_cut(tmp_path: Path) -> None:
    run = begin(tmp_path, "tuned", "positives.labels.epochs=1", recipe="infocse-finetune")
    manifest = json.loads((run / "model" / "cse.json").read_text(encoding="utf-8"))
    assert manifest["slice"]["use"] == "sentences"
