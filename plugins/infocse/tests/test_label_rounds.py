"""What a round of labels overrides, and what the run's own settings still bound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cse_testkit import compose, installed_registry, make_part, tiny_corpus, write_corpus

from cse_core.engine import step as engine
from cse_core.engine.passes import StepPasses
from cse_core.errors import CseError
from cse_core.recipes.settings import TrainOptions
from cse_core.runtime.reporter import Reporter
from cse_core.training.rounds import TrainingRound, read_round
from cse_core.training.run import train

PAIRS: dict[str, Any] = {"text": ["a"] * 100, "positive": ["b"] * 100}


@pytest.mark.parametrize(
    ("own", "most", "wanted"),
    [
        ({"batch_size": 10, "epochs": 2}, 200_000, 20),
        ({"batch_size": 10, "epochs": 2}, 7, 7),
        ({"batch_size": 10, "epochs": 2}, None, 20),
        ({"batch_size": 10}, 30, 30),
        ({"batch_size": 10, "epochs": 2, "max_steps": 50}, 30, 50),
    ],
)
def test_epochs_of_a_round_and_max_steps_of_the_run_both_bound_it(
    own: dict[str, Any], most: int | None, wanted: int
) -> None:
    options = TrainingRound(PAIRS, train=own, number=1).options(TrainOptions(max_steps=most))
    assert options.steps(100) == wanted


def test_documents_of_a_round_of_labels_are_encoded_in_chunks_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks: dict[int, set[tuple[int, int]]] = {}

    class Watched(StepPasses):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            first, stop = self.chunks[0]
            own = chunks.setdefault(self.position.round, set())
            own.add((len(self.index), stop - first))

    monkeypatch.setattr(engine, "StepPasses", Watched)
    corpus = tiny_corpus(columns=("document", "title"))
    file = write_corpus(corpus, tmp_path / "rows.csv")
    sets = [
        f"data.path=[{file}]", "train.max_steps=2", "train.device=cpu", "train.chunk_size=3",
        "positives.idc-labels.batch_size=6", "positives.idc-labels.chunk_size=2",
        "positives.idc-labels.rounds=2", "positives.idc-labels.idc_rounds=1",
        "positives.idc-labels.idc_after=false",
    ]  # fmt: skip
    composition = compose(recipe="infocse-plus", corpus=corpus, sets=sets)
    train(composition, installed_registry(), out=tmp_path / "run", reporter=Reporter())
    assert chunks == {1: {(4, 3)}, 2: {(6, 2)}, 3: {(4, 3)}, 4: {(6, 2)}}
    printed = (tmp_path / "run" / "run.toml").read_text(encoding="utf-8")
    assert "chunk_size = 3" in printed


@pytest.mark.parametrize(("pairs", "size", "wanted"), [(65, 64, 2), (64, 64, 1), (7, 2, 4)])
def test_labels_are_scored_after_each_epoch(
    pairs: int, size: int, wanted: int, tmp_path: Path
) -> None:
    file = tmp_path / "pairs.tsv"
    rows = "".join(f"a {row}\tb {row}\n" for row in range(pairs))
    file.write_text(f"text\tpositive\n{rows}")
    found = make_part("positives", "labels", file=str(file), batch_size=size).mine_round(Asked())
    assert found.train["eval_steps"] == wanted == TrainOptions(batch_size=size).steps(pairs)
    assert "lr" not in found.train and found.score is None and not found.keep_optimizer
    found = make_part("positives", "labels", file=str(file), lr=1e-3).mine_round(Asked())
    assert found.train["lr"] == 1e-3


def test_rounds_are_scored_as_often_as_they_ask(tmp_path: Path) -> None:
    """Clusters every ``train.eval_steps``, labels after each epoch, either at its end."""
    corpus = tiny_corpus(rows=40, columns=("document", "title"))
    file = write_corpus(corpus, tmp_path / "rows.csv")
    dev = tmp_path / "sts.dev.tsv"
    texts = list(corpus.column("text"))
    lines = [f"{texts[row]}\t{texts[row + 1]}\t{row % 5}" for row in range(20)]
    dev.write_text("\n".join(["sentence1\tsentence2\tscore", *lines]) + "\n")
    sets = [
        f"data.path=[{file}]", f"train.dev=[{dev}]", "train.device=cpu", "train.chunk_size=none",
        "train.epochs=2", "train.batch_size=8", "train.eval_steps=3", "train.patience=none",
        "train.log_steps=1000", "positives.idc-labels.pairs=32", "positives.idc-labels.epochs=3",
        "positives.idc-labels.batch_size=4", "positives.idc-labels.rounds=1",
        "positives.idc-labels.idc_rounds=1", "positives.idc-labels.idc_after=true",
        "positives.idc-labels.patience=3 epochs",
    ]  # fmt: skip
    composition = compose(recipe="infocse-plus", corpus=corpus, sets=sets)
    train(composition, installed_registry(), out=tmp_path / "run", reporter=Reporter())
    scored: dict[int, list[int]] = {}
    for line in (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
        if "sts.dev.spearman" in (made := json.loads(line)):
            scored.setdefault(made["round"], []).append(made["step"])
    pairs = [read_round(tmp_path / "run" / "rounds" / str(n), n).pairs for n in (1, 2, 3)]
    steps = [2 * -(-len(pairs[0]["text"]) // 8), 9, 2 * -(-len(pairs[2]["text"]) // 8)]
    assert len(pairs[1]["text"]) == 10, "ten titles in batches of 4 are three steps an epoch"
    ends = {1: steps[0], 3: steps[2]}
    wanted = {n: [*range(3, end, 3), end] for n, end in ends.items()}
    assert scored == {**wanted, 2: [3, 6, 9]}


class Asked:
    """A round's context that no clusters are asked of."""

    corpus = tiny_corpus()


@pytest.mark.parametrize("name", ["labels", "idc-labels"])
def test_pairs_that_have_changed_since_are_not_mined_again(name: str, tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    rows = ["text\tpositive", "a\tone", "b\ttwo", "c\tthree"]
    file.write_text("\n".join(rows))

    def made() -> Any:
        part = make_part("positives", name, file=str(file))
        return part, getattr(part, "labels", part)

    begun, labels = made()
    state = json.loads(json.dumps(begun.state_dict()))
    assert labels.mine_round(Asked()).pairs["text"] == ["a", "b", "c"]
    assert begun.state_dict()["digest"] == state["digest"] != ""
    same, labels = made()
    same.load_state_dict(state)
    assert labels.mine_round(Asked()).pairs["positive"] == ["one", "two", "three"]
    for changed in (rows[:-1], [*rows[:-1], "c\tfour"], [rows[0], "a\tone", "c\tthree", "b\ttwo"]):
        file.write_text("\n".join(changed))
        other, labels = made()
        other.load_state_dict(state)
        assert other.state_dict() == state, "a written round goes on, and keeps what it knew"
        with pytest.raises(CseError) as caught:
            labels.mine_round(Asked())
        line = str(caught.value)
        assert line.startswith(f"positives.{name}.file: ") and "\n" not in line
        assert "have changed since" in line
    old, labels = made()
    old.load_state_dict({key: value for key, value in state.items() if key != "digest"})
    assert labels.mine_round(Asked()), "a checkpoint of an earlier version knows of none"
