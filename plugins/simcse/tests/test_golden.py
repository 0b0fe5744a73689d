"""SimCSE's own code, run unmodified, gave these numbers; the parts give the same."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from cse_testkit import make_batch, make_context, make_part
from torch import Tensor

from cse_core.functional import similarity
from cse_core.options import LossOptions
from cse_core.types import Batch, Negatives
from cse_engine.step import negatives as core
from tests.shared import compare, golden, tensor

ROLES: Any = {"positive": "positive", "negative": "negative"}


def weighed(batch: Batch, logit: float) -> Negatives:
    """Return the core's in-batch negatives as the store weighs them."""
    store = make_part("negatives", "hard-negatives", weight=logit)
    negatives = core.negatives_for_loss(batch, LossOptions(), [store.name])
    return store.weigh(negatives, batch, make_context(batch))


def loss_of(batch: Batch, negatives: Negatives, temperature: float) -> Tensor:
    loss = make_part("loss", "infonce", temperature=temperature)
    return loss(batch, batch.targets["positive"], negatives, make_context(batch)).value


def logits_of(batch: Batch, negatives: Negatives, temperature: float) -> Tensor:
    """Return ``[A, N]`` logits of all columns, an anchor's own positive among them."""
    cosines = similarity(batch.anchors, negatives.vectors, "cosine")
    return cosines / temperature + negatives.log_weights


def test_in_batch_logits_loss_and_gradients() -> None:
    wanted = golden("simcse_infonce")
    atol, temperature = wanted["suggested_atol"], wanted["temp"]
    leaves = {name: tensor(wanted[name]).requires_grad_(True) for name in ("z1", "z2")}
    batch = make_batch({"anchor": leaves["z1"], "positive": leaves["z2"]})
    negatives = core.negatives_for_loss(batch, LossOptions(), ())
    logits = logits_of(batch, negatives, temperature)
    assert torch.allclose(logits, tensor(wanted["logits"]), rtol=0, atol=atol)
    compare(loss_of(batch, negatives, temperature), leaves, wanted, atol)


def test_logits_and_loss_with_hard_negatives() -> None:
    given = golden("simcse_infonce")
    atol, temperature, cases = given["suggested_atol"], given["temp"], given["with_hard_negative"]
    names = {"anchor": "z1", "positive": "z2", "negative": "z3_hard_negative"}
    batch = make_batch({view: tensor(given[name]) for view, name in names.items()}, views=ROLES)
    assert [each["hard_negative_weight_logit"] for each in cases] == [0.0, 0.7]
    assert make_part("negatives", "hard-negatives").options.weight == 0.0
    for wanted in cases:
        # SimCSE's code puts the weight into a float32 tensor before it is added to float64 logits.
        logit = float(torch.tensor(wanted["hard_negative_weight_logit"], dtype=torch.float32))
        negatives = weighed(batch, logit)
        assert negatives.blocks == (("in-batch", 4), ("negative", 4))
        logits = logits_of(batch, negatives, temperature)
        assert torch.allclose(logits, tensor(wanted["logits"]), rtol=0, atol=atol)
        value = loss_of(batch, negatives, temperature)
        assert float(value) == pytest.approx(wanted["loss"], abs=atol)


def test_the_weight_follows_the_corpus_row_not_the_place() -> None:
    """Rows of a batch in any order, one sentence with two hard negatives: its own are weighted."""
    batch = make_batch(views=ROLES, rows=[7, 3, 12], sentences=3)
    view = batch.views["negative"]["sentence"]
    order = torch.tensor([2, 0, 1, 0])
    batch = replace(batch, views={**batch.views, "negative": {"sentence": view.take(order)}})
    negatives = weighed(batch, 1.0)
    own = negatives.log_weights[:, 3:]
    assert own.tolist() == [[0, 1, 0, 1], [0, 0, 1, 0], [1, 0, 0, 0]]
    assert not negatives.log_weights[:, :3].any()
