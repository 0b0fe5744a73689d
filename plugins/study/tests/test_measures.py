"""Settings of a recipe for encoders that are not there."""

from __future__ import annotations

import pytest
from cse_study.measures.settings import settings

from cse_core.errors import CseError

POINT = {"recipe": "is-cse", "options": ["train.batch_size", "train.lr", "loss.smoothed.weight"]}


@pytest.mark.parametrize(
    ("family", "hidden", "values"),
    [
        ("bert", 768, [64, 3e-5, 0.1]),
        ("bert", 1024, [64, 1e-5, "quarter-cosine(0.005,0.05)"]),
        ("roberta", 768, [512, 1e-5, 0.1]),
    ],
)
def test_settings_are_those_of_the_encoder(family: str, hidden: int, values: list[object]) -> None:
    found = settings({**POINT, "family": family, "hidden": hidden})
    assert list(found.values()) == values


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(CseError, match="no such setting.*train.batchsize.*did you mean"):
        settings({**POINT, "family": "bert", "hidden": 768, "options": ["train.batchsize"]})
