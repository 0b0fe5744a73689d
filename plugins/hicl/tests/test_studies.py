"""Functions behind the paper's studies."""

import pytest
from cse_hicl.operations import operations


def test_operations_are_those_of_the_products() -> None:
    found = operations({"model": "starter", "tokens": 128, "length": 32, "repeats": 1})
    layers, hidden, inner = 4, 256, 1024

    def products(tokens: int) -> int:
        return layers * (4 * hidden**2 + 2 * hidden * inner + 2 * tokens * hidden) * 2 * tokens

    assert found["whole: operations"] == products(128)
    assert found["segments: operations"] == 4 * products(32)
    assert 1 < found["operations"] < found["l - 1"] + 1 == 4
    assert found["operations"] == pytest.approx(products(128) / (4 * products(32)))
    assert found["seconds"] > 0


def test_a_text_longer_than_the_encoder_is_refused() -> None:
    with pytest.raises(ValueError, match="takes 512 tokens"):
        operations({"model": "starter", "tokens": 1024, "length": 32})
