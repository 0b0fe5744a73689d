"""The learning rate of each step, and which weights decay."""

from __future__ import annotations

from pathlib import Path

import pytest

from cse_core.engine.optimizer import Optimizer
from tests.fixtures.tiny import Bench

HEADED = '[[pool]]\nuse = "cls"\n[[pool]]\nuse = "mlp"\n[[loss]]\nuse = "infonce"\n'


def optimizer(encoder: str, folder: Path, *sets: str) -> Optimizer:
    bench = Bench(encoder, folder, HEADED, *sets)
    return Optimizer(bench.assembly, bench.composition.train, 20)


def test_rates_rise_over_the_warmup_and_fall_from_there(encoder: str, folder: Path) -> None:
    for warmup in ("0.2", "4"):
        linear = optimizer(encoder, folder, f"train.warmup={warmup}", "train.schedule=linear")
        assert [linear.rate(step) for step in (0, 1, 3, 4, 12, 20)] == pytest.approx(
            [0, 0.25, 0.75, 1, 0.5, 0]
        )
    constant = optimizer(encoder, folder, "train.warmup=0", "train.schedule=constant")
    assert [constant.rate(step) for step in (0, 19)] == [1, 1]


def test_biases_and_norms_do_not_decay_and_heads_have_their_own_rate(
    encoder: str, folder: Path
) -> None:
    sets = ("train.weight_decay=0.1", "train.lr=1e-3", "train.head_lr=2e-3")
    made = optimizer(encoder, folder, *sets)
    names = {parameter: name for name, parameter in made.named.items()}
    found = {
        names[parameter]: (group["peak"], group["weight_decay"])
        for group in made.adamw.param_groups
        for parameter in group["params"]
    }
    assert found.keys() == made.named.keys() and len(found) > 20
    for name, pair in found.items():
        bare = name.endswith("bias") or "LayerNorm" in name
        assert pair == (1e-3 if name.startswith("encoder.") else 2e-3, 0.0 if bare else 0.1), name
