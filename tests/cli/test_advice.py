"""The plan warns of settings that hardly mean what they say."""

from __future__ import annotations

import pytest

from cse_cli.training.resolving import advice
from tests.fixtures.parts import compose, made_up_registry


@pytest.mark.parametrize(
    "setting, line",
    [
        ("train.chunk_size=65", "train.chunk_size 65 is larger than train.batch_size 64"),
        ("train.batch_size=2000", "is larger than the data (1000 rows)"),
        ("train.warmup=500", "train.warmup 500 is longer than the run (16 steps)"),
        (
            "loss.infonce.weight=linear(0.5,-0.25)",
            "loss.infonce.weight is below zero (-0.25): training increases that loss",
        ),
    ],
)
def test_what_may_be_a_mistake_is_warned_of(setting: str, line: str) -> None:
    (found,) = advice(compose(None, setting), made_up_registry())
    assert line in found


def test_what_is_plain_has_no_line() -> None:
    for setting in ("train.chunk_size=64", "train.warmup=0.5", "loss.infonce.weight=0"):
        assert not list(advice(compose(None, setting), made_up_registry()))
