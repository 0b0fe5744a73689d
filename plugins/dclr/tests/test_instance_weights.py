"""Which negatives a second encoder takes out, against loops."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from cse_testkit import compose, make_batch, make_context, make_part, run_steps, tiny_corpus

from cse_core.options import LossOptions
from cse_core.types import Batch, Negatives
from cse_engine.step import negatives as core
from tests.fixtures.methods import refusal

ROLES: Any = {"positive": "positive", "negative": "negative"}


def weighed(
    batch: Batch, fixed: Batch, options: LossOptions | None = None, **settings: Any
) -> tuple[Negatives, dict[str, Any]]:
    log: dict[str, Any] = {}
    ctx = make_context(batch, vectors=lambda view, branch: fixed.views[view], log=log)
    store = make_part("negatives", "instance-weights", **settings)
    negatives = core.negatives_for_loss(batch, options or LossOptions(), list(batch.stored))
    return store.weigh(negatives, batch, ctx), log


def test_weights_in_loops() -> None:
    in_batches: Any = ("target", "anchor", "both")
    for in_batch, view, center in product(in_batches, ("anchor", "positive"), (True, False)):
        batch, fixed = make_batch(sentences=5), make_batch(sentences=5, dimension=6, seed=9)
        options = LossOptions(in_batch=in_batch)
        found, log = weighed(batch, fixed, options, view=view, phi=0.1, center=center)
        one, other = (fixed.views[name]["sentence"].vectors for name in ("anchor", view))
        if center:
            one, other = one - one.mean(0), other - other.mean(0)
        removed = 0
        for i in range(5):
            for n in range(len(found)):
                j = int(found.row[n])
                similar = float(torch.cosine_similarity(one[i], other[j], dim=0)) > 0.1 and i != j
                assert float(found.log_weights[i, n]) == (float("-inf") if similar else 0.0)
                removed += similar
        share = removed / int((~found.mask).sum())
        assert removed and float(log["instance-weights.removed"]) == pytest.approx(share)


def test_pairs_of_one_row_are_judged_by_their_own_texts() -> None:
    batch, fixed = (make_batch(sentences=3, seed=seed, rows=[7, 7, 9]) for seed in (0, 9))
    found, _ = weighed(batch, fixed, view="positive", phi=0.0, center=False)
    one, other = (fixed.views[name]["sentence"].vectors for name in ("anchor", "positive"))
    for i, n in ((0, 2), (1, 2), (2, 0), (2, 1)):
        similar = float(torch.cosine_similarity(one[i], other[n], dim=0)) > 0
        assert bool(found.log_weights[i, n].isinf()) == similar


def test_only_columns_of_the_batch_are_judged() -> None:
    """Noise, stored rows and hard negatives have weight 1, even of a sentence of the batch."""
    queue = Negatives.of(torch.ones(2, 8), 4, name="queue", row=torch.tensor([1, 40]))
    batch = replace(make_batch(views=ROLES), stored={"queue": queue})
    same = torch.ones(4, 6, dtype=torch.float64)
    fixed = make_batch({"anchor": same, "positive": same, "negative": same}, views=ROLES)
    found, _ = weighed(batch, fixed)
    assert [name for name, _ in found.blocks] == ["in-batch", "negative", "queue"]
    assert found.log_weights[:, :4].isinf().sum() == 12 and not found.log_weights[:, 4:].any()


def test_weights_add_to_those_there_are() -> None:
    batch = make_batch(sentences=3)
    same = torch.ones(3, 6, dtype=torch.float64)
    fixed = make_batch({"anchor": same, "positive": -same})
    ctx = make_context(batch, vectors=lambda view, branch: fixed.views[view])
    given = core.negatives_for_loss(batch, LossOptions(), ())
    given = replace(given, log_weights=torch.full_like(given.log_weights, 0.5))
    found = make_part("negatives", "instance-weights").weigh(given, batch, ctx)
    assert torch.equal(found.log_weights, given.log_weights), "opposite: nothing is removed"
    found = make_part("negatives", "instance-weights", view="anchor").weigh(given, batch, ctx)
    assert float(found.log_weights[0, 0]) == 0.5 and found.log_weights[0, 1].isinf()


def test_rows_of_the_second_encoder_are_met_by_owner() -> None:
    """It may give its rows in another order; a sentence that it lacks is like no other."""
    vectors = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]], dtype=torch.float64)
    fixed = make_batch({"anchor": vectors, "positive": vectors})
    order = torch.tensor([2, 1, 0])
    turned = {
        name: {level: each.take(order) for level, each in levels.items()}
        for name, levels in fixed.views.items()
    }
    batch = make_batch(sentences=3)
    expected, _ = weighed(batch, fixed)
    found, _ = weighed(batch, replace(fixed, views=turned))
    assert torch.equal(found.log_weights, expected.log_weights)
    assert expected.log_weights.isinf().sum() == 2
    fewer = {
        name: {level: each.take(order[:2]) for level, each in levels.items()}
        for name, levels in fixed.views.items()
    }
    found, _ = weighed(batch, replace(fixed, views=fewer))
    assert not found.log_weights.any()


def test_what_a_queue_keeps_is_judged_by_the_vectors_beside_it() -> None:
    removed = {}
    for stored in ("true", "false"):
        sets = [
            f"negatives.instance-weights.stored={stored}", "negatives.instance-weights.phi=-0.999",
            "negatives.momentum-queue.size=16", "train.batch_size=4",
        ]  # fmt: skip
        rig = run_steps({"negatives": ["momentum-queue", "+instance-weights"]}, sets, steps=3)
        numbers = rig.scalars[-1]
        assert numbers["infonce.negatives.momentum-queue"] == 8
        removed[stored] = numbers["infonce.negatives.weight_zero"]
    assert removed == {"false": 3, "true": 11}, "three of the batch, and eight of two steps before"


def test_several_positives_of_a_text_are_refused() -> None:
    sets = ["views.positive.column=positive", "views.positive.lists=all"]
    corpus = tiny_corpus(columns=("positive",))
    assert "views.positive.lists = draw" in refusal(
        compose, recipe="dclr", sets=[*sets, "negatives.instance-weights.view=positive"],
        corpus=corpus,
    )  # fmt: skip
