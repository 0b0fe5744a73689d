"""ConSERT's own code, run unmodified, gave these numbers; infonce with core options does too."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from cse_testkit import Rig, compose, make_batch, make_context, tiny_corpus
from torch import Tensor

from tests.shared import shared_path

CL_RATE = 0.15
"""What the training script multiplies the file's loss by."""


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return json.loads(shared_path("golden/consert_ntxent.json").read_text(encoding="utf-8"))


def tensor(rows: list[list[float]]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("case", [0, 1])
def test_the_recipe_has_the_published_loss_and_gradients(golden: dict[str, Any], case: int) -> None:
    wanted, atol = golden["cases"][case], golden["suggested_atol"]
    rig = Rig(
        compose(recipe="consert", sets=[f"loss.infonce.temperature={wanted['temp']}"]),
        tiny_corpus(),
    )
    rig.begin()
    views = [tensor(golden[name]).requires_grad_(True) for name in ("view1", "view2")]
    batch = make_batch(dict(zip(("anchor", "positive"), views, strict=True)))
    objective = rig.loop.engine.objectives(
        batch.views,
        batch.roles,
        batch.rows,
        batch.corpus,
        make_context(batch),
        count_negatives=True,
    )
    value = objective.value
    assert value is not None
    assert float(value.detach()) == pytest.approx(CL_RATE * wanted["loss"], abs=atol)
    # The loss itself is the mean of the two directions, the published one their sum.
    loss = float(objective.parts["infonce.loss"])
    assert 2 * loss == pytest.approx(wanted["loss"], abs=atol)
    assert float(objective.parts["infonce.negatives"]) == 2 * 4 - 2
    for gradient, name in zip(torch.autograd.grad(value, views), ("view1", "view2"), strict=True):
        expected = CL_RATE * tensor(wanted[f"grad_{name}"])
        assert torch.allclose(gradient, expected, rtol=0, atol=atol)


def test_the_golden_file_has_both_temperatures(golden: dict[str, Any]) -> None:
    assert [each["temp"] for each in golden["cases"]] == [0.1, 0.05]
