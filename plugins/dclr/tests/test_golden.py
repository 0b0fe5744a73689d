"""DCLR's own code, run unmodified, gave these numbers; the parts give the same."""

from dataclasses import replace
from typing import Any

import torch
from cse_dclr.noise import harder
from cse_testkit import make_batch, make_context, make_part

from cse_core.functional import similarity
from cse_core.options import LossOptions
from cse_core.types import Batch, Negatives
from cse_engine.step import negatives as core
from tests.shared import compare, golden, tensor


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
        names = {"z1": "anchor", "z2": "positive"}
        leaves = {name: batch.views[view]["sentence"].vectors for name, view in names.items()}
        compare(value, leaves, case, atol)
