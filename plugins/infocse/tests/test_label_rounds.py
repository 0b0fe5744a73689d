"""What a round of labels overrides, and what the run's own settings still bound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cse_testkit import make_part, tiny_corpus

from cse_core.errors import CseError
from cse_core.recipes.settings import TrainOptions
from cse_core.training.rounds import TrainingRound


def test_epochs_of_a_round_and_max_steps_of_the_run_both_bound_it() -> None:
    pairs: dict[str, Any] = {"text": ["a"] * 100, "positive": ["b"] * 100}
    for own, most, wanted in (
        ({"batch_size": 10, "epochs": 2}, 200_000, 20),
        ({"batch_size": 10, "epochs": 2}, 7, 7),
        ({"batch_size": 10, "epochs": 2}, None, 20),
        ({"batch_size": 10}, 30, 30),
        ({"batch_size": 10, "epochs": 2, "max_steps": 50}, 30, 50),
    ):
        options = TrainingRound(pairs, train=own, number=1).options(TrainOptions(max_steps=most))
        assert options.steps(100) == wanted


def test_labels_are_scored_after_each_epoch(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    for pairs, size, wanted in ((65, 64, 2), (64, 64, 1), (7, 2, 4)):
        file.write_text("text\tpositive\n" + "".join(f"a {n}\tb {n}\n" for n in range(pairs)))
        part = make_part("positives", "labels", file=str(file), batch_size=size)
        found = part.mine_round(Asked())
        assert found.train["eval_steps"] == wanted == TrainOptions(batch_size=size).steps(pairs)
        assert "lr" not in found.train and found.score is None and not found.keep_optimizer
    found = make_part("positives", "labels", file=str(file), lr=1e-3).mine_round(Asked())
    assert found.train["lr"] == 1e-3


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
