"""Patience with its unit."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from cse_core.recipes.settings import TrainOptions
from cse_core.training.intervals import Intervals


def test_units() -> None:
    for patience, evaluate, per_epoch, wanted in (
        (3, 125, 40, 3),
        ("3 evaluations", 125, 40, 3),
        ("20000 steps", 1000, 40, 20),
        ("20001 steps", 1000, 40, 21),
        ("1 step", 1000, 40, 1),
        ("2 epochs", 16, 16, 2),
        ("2 epochs", 10, 16, 4),
        ("1epoch", 100, 16, 1),
    ):
        assert Intervals(1, evaluate, 0).evaluations(patience, per_epoch) == wanted


def test_others_are_refused() -> None:
    for value in (0, -1, "0 steps", "two epochs", "5 minutes", "2.5 epochs"):
        with pytest.raises(ValidationError, match="must be"):
            TrainOptions(patience=value)


def test_values_are_kept_as_they_were_written() -> None:
    assert TrainOptions(patience="2 epochs").patience == "2 epochs"
    assert TrainOptions(patience=4).patience == 4
    assert TrainOptions().patience is None
