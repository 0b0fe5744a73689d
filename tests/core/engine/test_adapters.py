"""A run whose adapter says which weights of the encoder train."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cse_core.errors import CseError
from tests.fixtures.tiny import Bench

HEAD = '[[pool]]\nuse = "cls"\n[[pool]]\nuse = "mlp"\n'
ADAPTED = f'{HEAD}[[loss]]\nuse = "infonce"\n[[adapter]]\nuse = "biases"\n'
EMA = f'{ADAPTED}[[negatives]]\nuse = "queue"\nbranch = "ema"\n[[branch]]\nuse = "ema"\n'


def test_an_ema_branch_shares_the_frozen_weights(encoder: str, folder: Path) -> None:
    bench = Bench(encoder, folder, EMA, "train.lr=1e-2", "branch.ema.decay=0.5")
    online, ema = (bench.assembly.encoders[name].encoder for name in ("online", "ema"))
    pairs = list(zip(online.parameters(), ema.parameters(), strict=True))
    assert all((one is other) != one.requires_grad for one, other in pairs)
    start = [one.detach().clone() for one, _ in pairs]
    bench.step()
    for (one, other), before in zip(pairs, start, strict=True):
        torch.testing.assert_close(other, (before + one) / 2 if one.requires_grad else before)


def test_a_run_has_one_adapter(encoder: str, folder: Path) -> None:
    with pytest.raises(CseError, match="a run has one adapter, not biases and more; remove 1"):
        Bench(encoder, folder, f'{ADAPTED}[[adapter]]\nuse = "biases"\nname = "more"\n')


def test_only_what_it_chose_and_the_heads_are_trained(encoder: str, folder: Path) -> None:
    bench = Bench(encoder, folder, ADAPTED, "train.lr=1e-2")
    names = set(bench.optimizer.named)
    own = {name for name in names if name.startswith("encoder.")}
    assert own and all(name.endswith("bias") for name in own)
    assert names - own == {"pool.mlp.stages.0.weight", "pool.mlp.stages.0.bias"}
    before = {n: v.clone() for n, v in bench.assembly.online.encoder.named_parameters()}
    bench.step()
    for name, value in bench.assembly.online.encoder.named_parameters():
        moved = not torch.equal(value, before[name])
        assert moved == value.requires_grad or name.endswith("key.bias"), name
    state = bench.optimizer.state()
    assert {name.rpartition(":")[0] for name in state} <= names
    held = sum(v.numel() for name, v in state.items() if name.endswith("exp_avg"))
    assert held == sum(value.numel() for value in bench.optimizer.named.values())
