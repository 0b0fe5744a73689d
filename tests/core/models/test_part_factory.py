"""What a setup gives to a part that is made."""

from __future__ import annotations

import torch
from cse_testkit import make_setup
from torch import nn


def test_layers_of_torch_draw_by_the_seed_of_the_run() -> None:
    def weights(seed: int, name: str = "layer") -> torch.Tensor:
        with make_setup(seed=seed).seeded(name):
            return nn.Linear(3, 2).weight.detach()

    before = torch.random.get_rng_state()
    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))
    assert not torch.equal(weights(1), weights(1, "other"))
    assert torch.equal(torch.random.get_rng_state(), before), "nobody else's draws change"
