"""The paper's objective in numpy gave these numbers; the parts give the same in float64."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from cse_testkit import make_batch, make_context, make_part

from cse_core.types import Batch, Embeddings, Negatives
from cse_engine.step import negatives as core
from tests.shared import golden, tensor


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    found: dict[str, Any] = golden("ifcl_twins_queue")
    assert len(found["cases"]) == 3
    return found


def batch_of(numbers: dict[str, Any]) -> Batch:
    """Return the batch, rows 100 to 103 of a corpus, none of which is in the queue."""
    names = {"anchor": "anchor", "identical": "identical", "positive": "fraternal"}
    batch = make_batch(
        {view: tensor(numbers[name]) for view, name in names.items()},
        views={"identical": "positive", "positive": "positive"},
        rows=range(100, 104),
    )
    views = dict(batch.views)
    for view, name in names.items():
        sentence = views[view]["sentence"]
        entered = replace(sentence, vectors=tensor(numbers[f"emb_{name}"]))
        views[view] = {**views[view], "input": entered}
    return replace(batch, views=views)


def stored(numbers: dict[str, Any], case: dict[str, Any], batch: Batch) -> Negatives:
    """Return what the store holds after the two batches of the file went through it."""
    store = make_part(
        "negatives", "hippocampus", batches=numbers["queue_batches_k"], forgetting=case["lambda"]
    )
    newest_first = tensor(numbers["queue_newest_first"])
    size = numbers["batch_N"]
    for first in reversed(range(0, len(newest_first), size)):
        earlier = make_batch({"anchor": newest_first[first : first + size]}, views={})
        store.after_step(earlier, make_context(earlier))
    found = store.candidates(batch, make_context(batch))
    assert found is not None
    return found


def loss_of(
    numbers: dict[str, Any], case: dict[str, Any], rows: list[int], **options: Any
) -> float:
    """Return the loss of the anchors of some rows, as if the others had no identical twin."""
    batch = batch_of(numbers)
    loss = make_part("loss", "twins", temperature=numbers["temp"], **options)
    batch = replace(batch, stored={"hippocampus": stored(numbers, case, batch)})
    negatives = core.negatives_for_loss(batch, loss.options, ["hippocampus"])
    assert negatives.blocks == (("in-batch", 4), ("hippocampus", 8))
    weights = torch.zeros(4, 1, dtype=torch.float64)
    weights[rows] = 1
    targets = replace(batch.targets["identical"], weights=weights)
    return float(loss(batch, targets, negatives, make_context(batch)).value)


def test_the_coefficients(numbers: dict[str, Any]) -> None:
    for case in numbers["cases"]:
        found = stored(numbers, case, batch_of(numbers))
        assert torch.equal(found.vectors, tensor(numbers["queue_newest_first"]))
        wanted, atol = tensor(case["p_m (m=1 is newest batch)"]), numbers["suggested_atol"]
        assert torch.allclose(found.log_weights.exp(), wanted.expand(4, -1), rtol=0, atol=atol)
        assert found.age.tolist() == [1] * 4 + [2] * 4


def test_the_objective_and_its_terms(numbers: dict[str, Any]) -> None:
    """Whole, and each term of the batch and of each sentence (the fraternal one is over all)."""
    every, atol = [0, 1, 2, 3], numbers["suggested_atol"]
    for case in numbers["cases"]:
        for reduction in ("mean", "sum"):
            value = loss_of(numbers, case, every, reduction=reduction)
            wanted = case[f"total_{reduction}_over_batch"]
            assert value == pytest.approx(wanted, rel=0, abs=atol)
        for term in ("identical", "fraternal", "margin"):
            off: dict[str, Any] = dict.fromkeys({"identical", "fraternal", "margin"} - {term}, 0.0)
            off["reduction"] = "sum"
            wanted = case[f"loss_{'twins' if term == 'margin' else term}_per_sample"]
            value = loss_of(numbers, case, every, **off)
            assert value == pytest.approx(sum(wanted), rel=0, abs=atol)
            for row in every if term != "fraternal" else ():
                value = loss_of(numbers, case, [row], **off)
                assert value == pytest.approx(wanted[row], rel=0, abs=atol)


def test_embeddings_have_no_gradient_from_the_margin(numbers: dict[str, Any]) -> None:
    batch = batch_of(numbers)
    leaves = []

    def leaf(rows: Embeddings) -> Embeddings:
        leaves.append(rows.vectors.clone().requires_grad_(True))
        return replace(rows, vectors=leaves[-1])

    views = {name: {**view, "input": leaf(view["input"])} for name, view in batch.views.items()}
    anchors = batch.anchors.clone().requires_grad_(True)
    batch = replace(batch, views=views, anchors=anchors)
    loss = make_part("loss", "twins", identical=0.0, fraternal=0.0)
    value = loss(
        batch, batch.targets["identical"], core.no_negatives(batch), make_context(batch)
    ).value
    gradients = torch.autograd.grad(value, [anchors, *leaves], allow_unused=True)
    assert gradients[0] is not None and bool(gradients[0].any())
    assert gradients[1:] == (None, None, None)
