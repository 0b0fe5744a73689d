"""DCLR's own code, run unmodified, gave these numbers; the parts give the same."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from cse_dclr.noise import harder
from cse_testkit import make_batch, make_context, make_part

from cse_core.engine import negatives as core
from cse_core.functional import similarity
from cse_core.options import LossOptions
from cse_core.types import Batch, Negatives
from tests.shared import golden, tensor


def batch_of(given: dict[str, Any]) -> Batch:
    anchor, positive = (tensor(given[name]).requires_grad_(True) for name in ("z1", "z2"))
    return make_batch({"anchor": anchor, "positive": positive})


def weighed(given: dict[str, Any], case: dict[str, Any], batch: Batch) -> Negatives:
    """Return in-batch negatives and noise as the store weighs them, by the file's fixed vectors."""
    moved = harder(
        tensor(case["noise_initial"]),
        tensor(given["z1"]),
        tensor(given["z2"]),
        steps=case["pgd_steps"],
        size=case["pgd_step_size"],
        temperature=given["temp"],
    )
    noise = Negatives.of(moved, len(batch.anchors), name="noise")
    batch = replace(batch, stored={"noise": noise})
    fixed = make_batch({"anchor": tensor(case["z1_fixed"]), "positive": tensor(case["z2_fixed"])})
    ctx = make_context(batch, vectors=lambda view, branch: fixed.views[view])
    store = make_part("negatives", "instance-weights", phi=case["phi"])
    return store.weigh(core.negatives_for_loss(batch, LossOptions(), ["noise"]), batch, ctx)


def test_weights_logits_loss_and_gradients() -> None:
    given = golden("dclr_loss")
    atol, temperature, cases = given["suggested_atol"], given["temp"], given["cases"]
    assert len(cases) == 3
    for case in cases:
        batch = batch_of(given)
        negatives = weighed(given, case, batch)
        weights = negatives.log_weights.exp()
        assert torch.equal(weights[:, :4], tensor(case["weights_in_batch"]))
        assert torch.equal(weights[:, 4:], torch.ones_like(weights[:, 4:])), "noise has weight 1"
        assert len(case["noise_initial"]) == int(4 * case["noise_times"])
        logits = similarity(batch.anchors, negatives.vectors) / temperature
        wanted = tensor(case["logits_before_weighting"])
        assert torch.allclose(logits, wanted, rtol=0, atol=atol)
        loss = make_part("loss", "dclr", variant="published", temperature=temperature)
        value = loss(batch, batch.targets["positive"], negatives, make_context(batch)).value
        assert float(value.detach()) == pytest.approx(case["loss"], abs=atol)
        views = [batch.views[name]["sentence"].vectors for name in ("anchor", "positive")]
        for gradient, name in zip(torch.autograd.grad(value, views), ("z1", "z2"), strict=True):
            assert torch.allclose(gradient, tensor(case[f"grad_{name}"]), rtol=0, atol=atol)


def test_the_paper_takes_the_removed_negative_out() -> None:
    """In the paper's loss its column is gone; in the code's it is still exp(0)."""
    given = golden("dclr_loss")
    batch = batch_of(given)
    negatives = weighed(given, given["cases"][0], batch)
    gone = replace(
        negatives,
        mask=negatives.mask | negatives.log_weights.isinf(),
        log_weights=torch.zeros_like(negatives.log_weights),
    )
    targets, ctx = batch.targets["positive"], make_context(batch)

    def value(variant: str, seen: Negatives) -> float:
        output = make_part("loss", "dclr", variant=variant)(batch, targets, seen, ctx)
        return float(output.value.detach())

    assert int(negatives.log_weights.isinf().sum()) == 1
    assert value("paper", negatives) == pytest.approx(value("paper", gone), abs=1e-12)
    assert value("published", negatives) != pytest.approx(value("published", gone), rel=1e-3)
