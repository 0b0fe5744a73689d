"""Another model clusters for the first round, the encoder itself from the second on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cse_testkit import compose, installed_registry, tiny_corpus, tiny_encoder, write_corpus

from cse_core.errors import CseError
from cse_core.runtime.reporter import Reporter
from cse_core.training.loop import TrainingLoop
from cse_core.training.rounds import read_round
from cse_core.training.run import resume, train
from cse_core.training.signals import Stopped
from cse_core.training.trainer import Trainer


def begin(folder: Path, name: str, model: Path, other: Path | None) -> Path:
    corpus = tiny_corpus(rows=40, columns=("document",), sentences=10)
    file = write_corpus(corpus, folder / "rows.csv")
    sets = [
        f"data.path=[{file}]", "train.max_steps=1", "train.device=cpu", "train.lr=0",
        "train.chunk_size=none", "positives.idc.rounds=2", "positives.idc.similarity=cosine",
        "model.max_length=500",
        *([] if other is None else [f"positives.idc.annotator={other}"]),
    ]  # fmt: skip
    kinds: Any = {"positives": ["~neighbour"]}
    composition = compose(recipe="infocse", kinds=kinds, corpus=corpus, sets=sets, encoder=model)
    train(composition, installed_registry(), out=folder / name, reporter=Reporter())
    return folder / name


def pairs(run: Path, number: int) -> set[tuple[int, int]]:
    found = read_round(run / "rounds" / str(number), number).pairs
    return set(zip(*(list(found[name]) for name in ("text", "positive")), strict=True))


def test_round_one_is_its_clusters_and_round_two_the_encoders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = tiny_encoder(tmp_path / "own", seed=1), tiny_encoder(tmp_path / "other", seed=2)
    # Without a learning rate every encoder clusters as it did at its start. An annotator reads
    # whole sentences, so the runs do, too.
    of_own, of_other = begin(tmp_path, "a", own, None), begin(tmp_path, "b", other, None)
    assert pairs(of_own, 1) == pairs(of_own, 2) != pairs(of_other, 1)
    whole = begin(tmp_path, "c", own, other)
    assert pairs(whole, 1) == pairs(of_other, 1)
    assert pairs(whole, 2) == pairs(of_own, 1)

    save = Trainer._save

    def stop(self: Trainer, loop: TrainingLoop, *rest: Any) -> None:
        save(self, loop, *rest)
        if loop.current.number == 1 and loop.done == 1:
            raise Stopped(loop.done)

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "_save", stop)
        with pytest.raises(Stopped):
            begin(tmp_path, "d", own, other)
    resume(tmp_path / "d", installed_registry(), reporter=Reporter())
    assert pairs(tmp_path / "d", 1) == pairs(of_other, 1)
    assert pairs(tmp_path / "d", 2) == pairs(of_own, 1), "the annotator's turn is over"


def test_a_model_that_is_not_there_is_told_by_its_option(tmp_path: Path) -> None:
    own = tiny_encoder(tmp_path / "own")
    with pytest.raises(CseError) as caught:
        begin(tmp_path, "run", own, tmp_path / "nothing")
    line = str(caught.value)
    assert line.startswith("positives.idc.annotator: ") and "\n" not in line
    assert not (tmp_path / "run").exists()
