"""The published loss where the code's log(1 - p) is not a number, and with several positives."""

import math
from dataclasses import replace

import pytest
import torch
from cse_testkit import make_batch, make_context, make_part

from cse_core.options import LossOptions
from cse_core.types import Negatives, Positives
from cse_engine.step import negatives as core


def test_p_of_one_is_no_nan() -> None:
    """At temperature 0.002 the best of each row has p = 1: its positive, or a wrong one."""
    for dtype in (torch.float32, torch.float64):
        for wrong in (False, True):
            anchors = torch.eye(3, 4, dtype=dtype).requires_grad_(True)
            same = anchors.detach().clone()
            batch = make_batch({"anchor": anchors, "positive": -same if wrong else same})
            more = Negatives.of(same if wrong else -same, 3, name="more")
            negatives = Negatives.join([core.negatives_for_loss(batch, LossOptions(), ()), more])
            loss = make_part("loss", "dclr", variant="published", temperature=0.002)
            value = loss(batch, batch.targets["positive"], negatives, make_context(batch)).value
            (gradient,) = torch.autograd.grad(value, anchors)
            assert bool(gradient.isfinite().all())
            # p of the wrong column is 1 less four columns of exp(-500), the positive's exp(-1000).
            wanted = (1000 + 500 - math.log(4)) / 6 if wrong else 0.0
            assert float(value.detach()) == pytest.approx(wanted, rel=1e-5, abs=1e-6)


def test_several_positives_each_compete_with_the_negatives_alone() -> None:
    batch = make_batch(sentences=2, groups={"found": 3})
    targets = batch.targets["found"]
    negatives = core.negatives_for_loss(batch, LossOptions(target="found"), ())
    loss, ctx = make_part("loss", "dclr", variant="published"), make_context(batch)
    weights = targets.weights
    assert weights is not None
    wanted = 0.0
    for a in range(2):
        for p in range(3):
            chosen = torch.zeros(2, 1, dtype=torch.float64)
            chosen[a] = 1.0
            share = float(weights[a, p] / weights[a].sum())
            one = Positives(targets.vectors[:, p : p + 1], chosen)
            wanted += share * float(loss(batch, one, negatives, ctx).value)
    assert float(loss(batch, targets, negatives, ctx).value) == pytest.approx(wanted / 2)


def test_the_papers_loss_is_infonce() -> None:
    batch = make_batch(sentences=3, groups={"found": 2})
    negatives = core.negatives_for_loss(batch, LossOptions(target="found"), ())
    negatives = replace(negatives, log_weights=torch.randn_like(negatives.log_weights))
    losses = (make_part("loss", name, temperature=0.3) for name in ("dclr", "infonce"))
    given = (batch, batch.targets["found"], negatives, make_context(batch))
    one, other = (loss(*given).value for loss in losses)
    assert torch.equal(one, other)
