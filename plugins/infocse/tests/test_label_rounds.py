"""What a round of labels overrides, and what the run's own settings still bound."""

from __future__ import annotations

from typing import Any

import pytest

from cse_core.rounds import TrainingRound
from cse_core.settings import TrainOptions

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
    options = TrainingRound(1, PAIRS, train=own).options(TrainOptions(max_steps=most))
    assert options.steps(100) == wanted
