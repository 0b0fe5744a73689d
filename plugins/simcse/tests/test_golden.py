"""SimCSE's own code, run unmodified, gave these numbers; the parts give the same."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from cse_testkit import make_batch, make_context, make_part
from torch import Tensor

from cse_core.engine import negatives as core
from cse_core.functional import similarity
from cse_core.options import LossOptions
from cse_core.types import Batch, Negatives
from tests.shared import shared_path


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return json.loads(shared_path("golden/simcse_infonce.json").read_text(encoding="utf-8"))


def tensor(rows: list[list[float]]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def batch_of(golden: dict[str, Any], *, hard: bool) -> Batch:
    vectors = {
        "anchor": tensor(golden["z1"]).requires_grad_(True),
        "positive": tensor(golden["z2"]).requires_grad_(True),
    }
    if not hard:
        return make_batch(vectors)
    vectors["negative"] = tensor(golden["z3_hard_negative"]).requires_grad_(True)
    return make_batch(vectors, views={"positive": "positive", "negative": "negative"})


def weighed(batch: Batch, logit: float) -> Negatives:
    """Return the core's in-batch negatives as the store weighs them."""
    store = make_part("negatives", "hard-negatives", weight=logit)
    negatives = core.of_loss(batch, LossOptions(), [store.name])
    return store.weigh(negatives, batch, make_context(batch))


def loss_of(golden: dict[str, Any], batch: Batch, negatives: Negatives) -> Tensor:
    loss = make_part("loss", "infonce", temperature=golden["temp"])
    return loss(batch, batch.targets["positive"], negatives, make_context(batch)).value


def logits_of(golden: dict[str, Any], batch: Batch, negatives: Negatives) -> Tensor:
    """Return ``[A, N]`` logits of all columns, an anchor's own positive among them."""
    cosines = similarity(batch.anchors, negatives.vectors, "cosine")
    return cosines / golden["temp"] + negatives.log_weights


def test_in_batch_logits_loss_and_gradients(golden: dict[str, Any]) -> None:
    batch, atol = batch_of(golden, hard=False), golden["suggested_atol"]
    negatives = core.of_loss(batch, LossOptions(), ())
    logits = logits_of(golden, batch, negatives)
    assert torch.allclose(logits, tensor(golden["logits"]), rtol=0, atol=atol)
    value = loss_of(golden, batch, negatives)
    assert float(value.detach()) == pytest.approx(golden["loss"], abs=atol)
    views = [batch.views[name]["sentence"].vectors for name in ("anchor", "positive")]
    for gradient, name in zip(torch.autograd.grad(value, views), ("z1", "z2"), strict=True):
        assert torch.allclose(gradient, tensor(golden[f"grad_{name}"]), rtol=0, atol=atol)


@pytest.mark.parametrize("case", [0, 1])
def test_with_hard_negatives(golden: dict[str, Any], case: int) -> None:
    wanted, atol = golden["with_hard_negative"][case], golden["suggested_atol"]
    batch = batch_of(golden, hard=True)
    # SimCSE's code puts the weight into a float32 tensor before it is added to float64 logits.
    logit = float(torch.tensor(wanted["hard_negative_weight_logit"], dtype=torch.float32))
    negatives = weighed(batch, logit)
    assert negatives.blocks == (("in-batch", 4), ("negative", 4))
    logits = logits_of(golden, batch, negatives)
    assert torch.allclose(logits, tensor(wanted["logits"]), rtol=0, atol=atol)
    value = loss_of(golden, batch, negatives)
    assert float(value.detach()) == pytest.approx(wanted["loss"], abs=atol)


def test_the_golden_file_has_a_weight_besides_zero(golden: dict[str, Any]) -> None:
    weights = [each["hard_negative_weight_logit"] for each in golden["with_hard_negative"]]
    assert weights == [0.0, 0.7]


def test_the_weight_is_a_factor_in_the_denominator() -> None:
    """Eq. 5 with the paper's alpha: logit log(alpha) multiplies one's own hard negative only."""
    batch = make_batch(views={"positive": "positive", "negative": "negative"}, sentences=3)
    alpha, temperature = 2.5, 0.05
    loss = make_part("loss", "infonce", temperature=temperature)
    negatives = weighed(batch, math.log(alpha))
    value = loss(batch, batch.targets["positive"], negatives, make_context(batch)).value

    def vectors(view: str) -> Tensor:
        return batch.views[view]["sentence"].vectors

    total = 0.0
    for i in range(3):
        h = vectors("anchor")[i]
        mass = 0.0
        for j in range(3):
            for view, factor in (("positive", 1.0), ("negative", alpha if i == j else 1.0)):
                cosine = float(torch.cosine_similarity(h, vectors(view)[j], dim=0))
                mass += factor * math.exp(cosine / temperature)
        own = float(torch.cosine_similarity(h, vectors("positive")[i], dim=0))
        total -= math.log(math.exp(own / temperature) / mass)
    assert float(value) == pytest.approx(total / 3, rel=1e-9)


def test_hard_negatives_of_others_count_with_weight_one() -> None:
    batch = make_batch(views={"positive": "positive", "negative": "negative"})
    negatives = weighed(batch, 0.7)
    assert not negatives.mask[:, 4:].any()
    assert torch.equal(negatives.mask[:, :4], torch.eye(4, dtype=torch.bool))
    assert torch.equal(negatives.log_weights[:, 4:], 0.7 * torch.eye(4, dtype=torch.float64))
    assert not negatives.log_weights[:, :4].any()


def test_the_weight_follows_the_corpus_row_not_the_place() -> None:
    """Rows of a batch in any order, one sentence with two hard negatives: its own are weighted."""
    batch = make_batch(
        views={"positive": "positive", "negative": "negative"}, rows=[7, 3, 12], sentences=3
    )
    view = batch.views["negative"]["sentence"]
    order = torch.tensor([2, 0, 1, 0])
    batch = replace(batch, views={**batch.views, "negative": {"sentence": view.take(order)}})
    negatives = weighed(batch, 1.0)
    own = negatives.log_weights[:, 3:]
    assert own.tolist() == [[0, 1, 0, 1], [0, 0, 1, 0], [1, 0, 0, 0]]


def test_weight_zero_returns_the_negatives_as_they_are() -> None:
    batch = make_batch(views={"positive": "positive", "negative": "negative"})
    negatives = core.of_loss(batch, LossOptions(), ())
    store = make_part("negatives", "hard-negatives")
    assert store.weigh(negatives, batch, make_context(batch)) is negatives
