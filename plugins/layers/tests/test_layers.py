"""Vectors of layers beside those of a pooler of rows, and settings of the loss."""

import pytest
import torch
from cse_layers.options import EveryLayerOptions
from cse_testkit import make_part, tiny_tokenizer

from cse_core.types import Hidden


@pytest.mark.parametrize("tokens", ["all", "first"])
def test_each_row_has_a_vector_from_each_layer(tokens: str) -> None:
    """Row by row, and in a row layer by layer: the slot of layer i is i - 1."""
    pooler, tokenizer = make_part("pool", "layer-vectors", tokens=tokens), tiny_tokenizer()
    pooler.layers = (1, 2, 3)
    rows = tokenizer.wrap(tokenizer.content(["old", "the old dog", ""]))
    states = {i: torch.randn(len(rows.ids), 4, generator=torch.Generator().manual_seed(i))
              for i in pooler.layers}  # fmt: skip
    units = pooler.units(rows, "anchor")
    made = pooler.pool(Hidden(states[3], states), units)
    assert units.row.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2] and len(made) == 9
    for row in range(3):
        start, stop = rows.offsets[row : row + 2].tolist()
        for place, layer in enumerate(pooler.layers):
            inside = states[layer][start : stop if tokens == "all" else start + 1]
            torch.testing.assert_close(made[3 * row + place], inside.mean(dim=0))


def test_defaults_are_those_of_the_public_code() -> None:
    options = EveryLayerOptions()
    assert (options.layers, options.align, options.align_temperature) == (1, 1.0, 0.3)
    assert (options.weighting, options.temperature) == ("uniform", 0.05)
