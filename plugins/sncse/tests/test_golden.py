"""SNCSE's own code, run unmodified, gave these numbers; the parts give the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from cse_testkit import make_batch, make_context, make_part
from torch import Tensor

from cse_core.engine import negatives as core
from cse_core.options import LossOptions
from cse_core.types import Batch
from tests.shared import shared_path


def tensor(rows: list[list[float]]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64).requires_grad_(True)


def batch_of(case: dict[str, Any]) -> Batch:
    return make_batch(
        {
            "anchor": tensor(case["z1"]),
            "positive": tensor(case["z2"]),
            "soft_negative": tensor(case["z3_soft_negative"]),
        },
        views={"positive": "positive", "soft_negative": "soft_negative"},
    )


def test_losses_and_gradients() -> None:
    golden = json.loads(shared_path("golden/sncse_bml.json").read_text(encoding="utf-8"))
    names = ["bert", "roberta", "lambda1", "all_inside_band"]
    assert [case["name"] for case in golden["cases"]] == names
    atol = golden["suggested_atol"]
    for case in golden["cases"]:
        batch = batch_of(case)
        ctx, targets = make_context(batch), batch.targets["positive"]
        infonce = make_part("loss", "infonce", temperature=golden["temp"])
        options = {"alpha": case["alpha"], "beta": case["beta"], "weight": case["lambda"]}
        bml = make_part("loss", "bml", **options)
        contrast = infonce(
            batch, targets, core.negatives_for_loss(batch, LossOptions(), ()), ctx
        ).value
        margin = bml(batch, targets, core.no_negatives(batch), ctx).value
        total = contrast + bml.options.weight.at(0, 10) * margin
        assert float(contrast.detach()) == pytest.approx(case["loss_infonce"], abs=atol)
        assert float(margin.detach()) == pytest.approx(case["bml_mean"], abs=atol)
        assert float(total.detach()) == pytest.approx(case["loss_total"], abs=atol)
        views = [batch.views[view]["sentence"].vectors for view in ("anchor", "soft_negative")]
        found = torch.autograd.grad(total, views)
        for gradient, key in zip(found, ("grad_z1", "grad_z3"), strict=True):
            wanted = torch.tensor(case[key], dtype=torch.float64)
            assert torch.allclose(gradient, wanted, rtol=0, atol=atol)
