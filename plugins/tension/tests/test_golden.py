"""Sentence-transformers' own code gave these numbers; the losses give the same."""

from dataclasses import replace
from typing import Any

import torch
from cse_testkit import make_batch, make_context, make_part
from torch import Tensor

from cse_core.types import Batch, Negatives
from tests.shared import compare, golden, tensor

BOUND = 1e-9


def case(name: str) -> tuple[dict[str, Any], dict[str, Tensor], Batch]:
    """Return a case, its leaves and their batch: model 2 encodes the anchors and is kept."""
    found = next(c for c in golden("goldA")["contrastive_tension"]["cases"] if c["name"] == name)
    names = ("model2_vectors", "model1_vectors")
    leaves = {name: tensor(found[name]).requires_grad_(True) for name in names}
    anchors, positives = leaves.values()
    return found, leaves, make_batch({"anchor": anchors, "positive": positives})


def test_pairs() -> None:
    """One pair in four is of one text; each of the others is one given negative."""
    found, leaves, batch = case("pairs_ratio_4")
    assert found["labels"] == [1, 0, 0, 0] * 2
    given = Negatives.of(leaves["model1_vectors"], 8, name="pairs", mask=~torch.eye(8).bool())
    part = make_part("loss", "tension", pairs="published", different=3, reduction="sum")
    value = part(batch, batch.targets["positive"], given, make_context(batch)).value
    compare(value, leaves, found, BOUND)


def test_in_the_batch_with_a_learned_temperature() -> None:
    found, leaves, batch = case("in_batch_cosine_20")
    part = make_part("loss", "learned-infonce", start=1 / found["scale"]).double()
    part.log_scale.data = tensor(found["logit_scale"])
    ctx = make_context(batch)

    def one_way(batch: Batch) -> Tensor:
        negatives = ctx.negatives(batch, part.options)
        value: Tensor = part(batch, batch.targets["positive"], negatives, ctx).value
        return value

    anchors, positives = batch.anchors, batch.targets["positive"].vectors[:, 0]
    turned = make_batch({"anchor": positives, "positive": anchors})
    value = (one_way(batch) + one_way(replace(turned, view="positive"))) / 2
    compare(value, {**leaves, "logit_scale": part.log_scale}, found, BOUND)
