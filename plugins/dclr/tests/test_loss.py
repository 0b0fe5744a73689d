"""The published loss where log(1 - p) of the authors' code is not a number."""

from __future__ import annotations

import pytest
import torch
from cse_testkit import make_batch, make_context, make_part
from torch import Tensor

from cse_core.engine import negatives as core
from cse_core.options import LossOptions
from cse_core.types import Negatives, Positives


def value_and_gradient(
    anchors: Tensor, positives: Tensor, more: Tensor, temperature: float, **options: object
) -> tuple[float, Tensor]:
    anchors = anchors.clone().requires_grad_(True)
    batch = make_batch({"anchor": anchors, "positive": positives})
    stored = Negatives.of(more, len(anchors), name="more")
    negatives = Negatives.join([core.negatives_for_loss(batch, LossOptions(), ()), stored])
    loss = make_part("loss", "dclr", variant="published", temperature=temperature, **options)
    value = loss(batch, batch.targets["positive"], negatives, make_context(batch)).value
    (gradient,) = torch.autograd.grad(value, anchors)
    return float(value.detach()), gradient


def by_the_code(anchors: Tensor, positives: Tensor, more: Tensor, temperature: float) -> Tensor:
    """Compute the loss as the authors' code does."""
    columns = torch.cat([positives, more])
    logits = torch.cosine_similarity(anchors.unsqueeze(1), columns, dim=2) / temperature
    p = logits.softmax(dim=1)
    y = torch.eye(len(anchors), len(columns), dtype=p.dtype)
    return -(y * p.log() + (1 - y) * (1 - p).log()).mean()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("wrong", [False, True])
def test_p_of_one_is_no_nan(dtype: torch.dtype, wrong: bool) -> None:
    """At temperature 0.002 the best of each row has p = 1: its positive, or a wrong one."""
    anchors = torch.eye(3, 4, dtype=dtype)
    positives = -anchors if wrong else anchors
    more = anchors.clone() if wrong else -anchors
    assert not bool(by_the_code(anchors, positives, more, 0.002).isfinite())
    value, gradient = value_and_gradient(anchors, positives, more, 0.002)
    assert bool(gradient.isfinite().all())
    if not wrong:
        assert value == pytest.approx(0.0, abs=1e-6)
        return
    # p of the wrong column is 1 less four columns of exp(-500), the positive's p is exp(-1000).
    left = 500 - torch.log(torch.tensor(4.0)).item()
    assert value == pytest.approx((1000 + left) / 6, rel=1e-5)


def test_it_is_the_codes_where_that_is_a_number() -> None:
    draws = torch.Generator().manual_seed(3)
    anchors, positives, more = (
        torch.randn(5, 8, generator=draws, dtype=torch.float64) for _ in range(3)
    )
    wanted = float(by_the_code(anchors, positives, more, 0.1))
    assert value_and_gradient(anchors, positives, more, 0.1)[0] == pytest.approx(wanted, rel=1e-10)
    summed = value_and_gradient(anchors, positives, more, 0.1, reduction="sum")[0]
    assert summed == pytest.approx(5 * wanted, rel=1e-10)


@pytest.mark.parametrize("variant", ["paper", "published"])
def test_an_anchor_without_a_positive_does_not_count(variant: str) -> None:
    batch = make_batch(sentences=3)
    own = batch.targets["positive"].vectors
    weights = torch.tensor([[1.0], [1.0], [0.0]], dtype=torch.float64)
    negatives = core.negatives_for_loss(batch, LossOptions(), ())
    loss, ctx = make_part("loss", "dclr", variant=variant), make_context(batch)
    whole = make_part("loss", "dclr", variant=variant, reduction="sum")
    found = float(loss(batch, Positives(own, weights), negatives, ctx).value)
    summed = float(whole(batch, Positives(own, weights), negatives, ctx).value)
    assert found == pytest.approx(summed / 2, rel=1e-12)


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
            one = Positives(targets.vectors[:, p : p + 1], torch.zeros(2, 1, dtype=torch.float64))
            assert one.weights is not None
            one.weights[a] = 1.0
            share = float(weights[a, p] / weights[a].sum())
            wanted += share * float(loss(batch, one, negatives, ctx).value)
    assert float(loss(batch, targets, negatives, ctx).value) == pytest.approx(wanted / 2)
