"""The plan warns of settings that hardly mean what they say."""

from __future__ import annotations

from cse_cli.training.resolving import advice
from tests.fixtures.parts import compose, made_up_registry

WARNED = {
    "train.chunk_size=65": "train.chunk_size 65 is larger than train.batch_size 64",
    "train.batch_size=2000": "is larger than the data (1000 rows)",
    "train.warmup=500": "train.warmup 500 is longer than the run (16 steps)",
    "loss.infonce.weight=linear(0.5,-0.25)": (
        "loss.infonce.weight is below zero (-0.25): training increases that loss"
    ),
}
PLAIN = ("train.chunk_size=64", "train.batch_size=1000", "train.warmup=16", "train.warmup=0.5",
         "loss.infonce.weight=0")  # fmt: skip


def test_what_may_be_a_mistake_is_warned_of_and_what_is_plain_is_not() -> None:
    for setting, line in WARNED.items():
        (found,) = advice(compose(None, setting), made_up_registry())
        assert line in found
    for setting in PLAIN:
        assert not list(advice(compose(None, setting), made_up_registry())), setting
