"""DCLR's own code, run unmodified, gave these numbers; the parts give the same."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import torch
from cse_dclr.ascent import harder
from cse_testkit import make_batch, make_context, make_part
from torch import Tensor

from cse_core.engine import negatives as core
from cse_core.functional import similarity
from cse_core.options import LossOptions
from cse_core.types import Batch, Negatives
from tests.shared import shared_path

CASES = range(3)


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return json.loads(shared_path("golden/dclr_loss.json").read_text(encoding="utf-8"))


def tensor(rows: list[list[float]]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def batch_of(golden: dict[str, Any]) -> Batch:
    anchor, positive = (tensor(golden[name]).requires_grad_(True) for name in ("z1", "z2"))
    return make_batch({"anchor": anchor, "positive": positive})


def moved(golden: dict[str, Any], case: dict[str, Any]) -> Tensor:
    return harder(
        tensor(case["noise_initial"]),
        tensor(golden["z1"]),
        tensor(golden["z2"]),
        steps=case["pgd_steps"],
        size=case["pgd_step_size"],
        temperature=golden["temp"],
    )


def weighed(golden: dict[str, Any], case: dict[str, Any], batch: Batch) -> Negatives:
    """Return in-batch negatives and noise as the store weighs them, by the file's fixed vectors."""
    noise = Negatives.of(moved(golden, case), len(batch.anchors), name="noise")
    batch = replace(batch, stored={"noise": noise})
    fixed = make_batch({"anchor": tensor(case["z1_fixed"]), "positive": tensor(case["z2_fixed"])})
    ctx = make_context(batch, vectors=lambda view, branch: fixed.views[view])
    store = make_part("negatives", "instance-weights", phi=case["phi"])
    return store.weigh(core.negatives_for_loss(batch, LossOptions(), ["noise"]), batch, ctx)


@pytest.mark.parametrize("number", CASES)
def test_weights_of_the_batch(golden: dict[str, Any], number: int) -> None:
    case, batch = golden["cases"][number], batch_of(golden)
    weights = weighed(golden, case, batch).log_weights.exp()
    assert torch.equal(weights[:, :4], tensor(case["weights_in_batch"]))
    assert torch.equal(weights[:, 4:], torch.ones_like(weights[:, 4:])), "noise has weight 1"
    assert len(case["noise_initial"]) == int(4 * case["noise_times"])


@pytest.mark.parametrize("number", CASES)
def test_logits_after_the_ascent(golden: dict[str, Any], number: int) -> None:
    case, batch = golden["cases"][number], batch_of(golden)
    vectors = weighed(golden, case, batch).vectors
    logits = similarity(batch.anchors, vectors) / golden["temp"]
    wanted = tensor(case["logits_before_weighting"])
    assert torch.allclose(logits, wanted, rtol=0, atol=golden["suggested_atol"])


@pytest.mark.parametrize("number", CASES)
def test_loss_and_gradients(golden: dict[str, Any], number: int) -> None:
    case, batch, atol = golden["cases"][number], batch_of(golden), golden["suggested_atol"]
    loss = make_part("loss", "dclr", variant="published", temperature=golden["temp"])
    negatives = weighed(golden, case, batch)
    value = loss(batch, batch.targets["positive"], negatives, make_context(batch)).value
    assert float(value.detach()) == pytest.approx(case["loss"], abs=atol)
    views = [batch.views[name]["sentence"].vectors for name in ("anchor", "positive")]
    for gradient, name in zip(torch.autograd.grad(value, views), ("z1", "z2"), strict=True):
        assert torch.allclose(gradient, tensor(case[f"grad_{name}"]), rtol=0, atol=atol)


def test_the_paper_takes_the_removed_negative_out(golden: dict[str, Any]) -> None:
    """In the paper's loss its column is gone; in the code's it is still exp(0)."""
    case, batch = golden["cases"][0], batch_of(golden)
    negatives = weighed(golden, case, batch)
    gone = replace(
        negatives,
        mask=negatives.mask | negatives.log_weights.isinf(),
        log_weights=torch.zeros_like(negatives.log_weights),
    )
    targets, ctx = batch.targets["positive"], make_context(batch)

    def value(variant: str, given: Negatives) -> float:
        output = make_part("loss", "dclr", variant=variant)(batch, targets, given, ctx)
        return float(output.value.detach())

    assert int(negatives.log_weights.isinf().sum()) == 1
    assert value("paper", negatives) == pytest.approx(value("paper", gone), abs=1e-12)
    assert value("published", negatives) != pytest.approx(value("published", gone), rel=1e-3)
