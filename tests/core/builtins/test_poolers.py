"""Built-in poolers and heads against loops, and weights that depend on the seed alone."""

from __future__ import annotations

import pytest
import torch
from cse_testkit.batches import make_setup, tiny_tokenizer

from cse_core.builtins.heads import Mlp
from cse_core.builtins.options import FirstLastOptions, MlpOptions
from cse_core.builtins.poolers import Cls, FirstLast, Mean
from cse_core.options import PoolerOptions
from cse_core.types import Hidden

SETUP = make_setup()
TOKENS = tiny_tokenizer().wrap(tiny_tokenizer().content(["anna paints the boat", "it", ""], 64))
DRAWS = torch.Generator().manual_seed(0)
LAYERS = {
    layer: torch.randn(len(TOKENS.ids), 4, generator=DRAWS, dtype=torch.float64)
    for layer in (0, 1, 2)
}
HIDDEN = Hidden(LAYERS[2], LAYERS)


def by_hand(*layers: int) -> list[list[float]]:
    """The mean of the layers' means over the tokens of each row."""
    rows = []
    for start, stop in zip(TOKENS.offsets[:-1].tolist(), TOKENS.offsets[1:].tolist(), strict=True):
        own = [sum(LAYERS[layer][token] for layer in layers) / len(layers)
               for token in range(start, stop)]  # fmt: skip
        rows.append((sum(own) / len(own)).tolist())
    return rows


def test_each_pools_what_it_says() -> None:
    first = TOKENS.offsets[:-1]
    pooled = {
        "cls": (Cls(PoolerOptions(), SETUP), LAYERS[2][first].tolist()),
        "mean": (Mean(PoolerOptions(), SETUP), by_hand(2)),
        "embeddings": (FirstLast(FirstLastOptions(first="embeddings"), SETUP), by_hand(0, 2)),
        "layer": (FirstLast(FirstLastOptions(first="layer"), SETUP), by_hand(1, 2)),
    }
    for name, (pooler, wanted) in pooled.items():
        found = pooler.pool(HIDDEN, TOKENS)
        assert torch.equal(found, found.double()), name
        torch.testing.assert_close(found, torch.tensor(wanted, dtype=torch.float64))


def test_weights_of_a_head_follow_the_runs_seed_alone() -> None:
    made = []
    for noise in (0, 1):
        torch.manual_seed(noise)
        made.append(Mlp(MlpOptions(layers=2), SETUP))
    for one, other in zip(made[0].parameters(), made[1].parameters(), strict=True):
        assert torch.equal(one, other)
    first = made[0].stages[0].weight
    assert isinstance(first, torch.Tensor)
    assert float(first.detach().std()) == pytest.approx(0.02, rel=0.2)
