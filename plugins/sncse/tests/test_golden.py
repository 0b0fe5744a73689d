"""SNCSE's own code, run unmodified, gave these numbers; the parts give the same."""

from typing import Any

import pytest
from cse_testkit import make_batch, make_context, make_part

from cse_core.options import LossOptions
from cse_engine.step import negatives as core
from tests.shared import compare, golden, tensor

ROLES: Any = {"positive": "positive", "soft_negative": "soft_negative"}


def test_losses_and_gradients() -> None:
    given = golden("sncse_bml")
    names = ["bert", "roberta", "lambda1", "all_inside_band"]
    assert [case["name"] for case in given["cases"]] == names
    atol = given["suggested_atol"]
    for case in given["cases"]:
        keys = {"anchor": "z1", "positive": "z2", "soft_negative": "z3_soft_negative"}
        vectors = {view: tensor(case[key]).requires_grad_(True) for view, key in keys.items()}
        batch = make_batch(vectors, views=ROLES)
        ctx, targets = make_context(batch), batch.targets["positive"]
        infonce = make_part("loss", "infonce", temperature=given["temp"])
        options = {"alpha": case["alpha"], "beta": case["beta"], "weight": case["lambda"]}
        bml = make_part("loss", "bml", **options)
        contrast = infonce(
            batch, targets, core.negatives_for_loss(batch, LossOptions(), ()), ctx
        ).value
        margin = bml(batch, targets, core.no_negatives(batch), ctx).value
        total = contrast + bml.options.weight.at(0, 10) * margin
        assert float(contrast.detach()) == pytest.approx(case["loss_infonce"], abs=atol)
        assert float(margin.detach()) == pytest.approx(case["bml_mean"], abs=atol)
        leaves = {"z1": vectors["anchor"], "z3": vectors["soft_negative"]}
        compare(total, leaves, {**case, "loss": case["loss_total"]}, atol)
