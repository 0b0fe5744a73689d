"""ESimCSE's own code, run unmodified, gave these numbers; the recipe's objective gives the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from cse_testkit import Rig, compose, make_batch, make_context, tiny_corpus
from torch import Tensor

from tests.shared import shared_path


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return json.loads(shared_path("golden/esimcse_queue.json").read_text(encoding="utf-8"))


def tensor(rows: list[list[float]]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def objective(golden: dict[str, Any], *, queue: bool) -> tuple[Tensor, list[Tensor]]:
    """Return the recipe's loss of the file's vectors, with the file's queue in the store."""
    rig = Rig(compose(recipe="esimcse"), tiny_corpus())
    rig.begin()
    views = [tensor(golden[name]).requires_grad_(True) for name in ("z1", "z2")]
    batch = make_batch(dict(zip(("anchor", "positive"), views, strict=True)))
    if queue:
        held = tensor(golden["queue"])
        rig.assembly.parts["negatives.momentum-queue"].load_state_dict(
            {
                "vectors": held,
                "row": torch.arange(20, 20 + len(held)),
                "age": torch.ones(len(held), dtype=torch.long),
            }
        )
    found = rig.loop.engine.objectives(
        batch.views, batch.roles, batch.rows, batch.corpus, make_context(batch)
    )
    assert found.value is not None
    return found.value, views


def test_loss_without_a_queue(golden: dict[str, Any]) -> None:
    value, _ = objective(golden, queue=False)
    atol = golden["suggested_atol"]
    assert float(value.detach()) == pytest.approx(golden["loss_without_queue"], abs=atol)


def test_loss_and_gradients_with_a_queue_of_six(golden: dict[str, Any]) -> None:
    value, views = objective(golden, queue=True)
    atol = golden["suggested_atol"]
    assert float(value.detach()) == pytest.approx(golden["loss"], abs=atol)
    for gradient, name in zip(torch.autograd.grad(value, views), ("z1", "z2"), strict=True):
        assert torch.allclose(gradient, tensor(golden[f"grad_{name}"]), rtol=0, atol=atol)
