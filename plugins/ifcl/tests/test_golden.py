"""The paper's objective in numpy gave these numbers; the parts give the same in float64."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import torch
from cse_testkit import make_batch, make_context, make_part
from torch import Tensor

from cse_core.engine import negatives as core
from cse_core.types import Batch, Embeddings, Negatives
from tests.shared import shared_path

CASES = [0, 1, 2]


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return json.loads(shared_path("golden/ifcl_twins_queue.json").read_text(encoding="utf-8"))


def tensor(rows: list[Any]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def batch_of(golden: dict[str, Any]) -> Batch:
    """Return the batch, rows 100 to 103 of a corpus, none of which is in the queue."""
    names = {"anchor": "anchor", "identical": "identical", "positive": "fraternal"}
    batch = make_batch(
        {view: tensor(golden[name]) for view, name in names.items()},
        views={"identical": "identical", "positive": "positive"},
        rows=range(100, 104),
    )
    views = dict(batch.views)
    for view, name in names.items():
        sentence = views[view]["sentence"]
        entered = replace(sentence, vectors=tensor(golden[f"emb_{name}"]))
        views[view] = {**views[view], "input": entered}
    return replace(batch, views=views)


def stored(golden: dict[str, Any], case: dict[str, Any], batch: Batch) -> Negatives:
    """Return what the store holds after the two batches of the file went through it."""
    store = make_part(
        "negatives",
        "hippocampus",
        batches=golden["queue_batches_k"],
        forgetting=case["lambda"],
    )
    newest_first = tensor(golden["queue_newest_first"])
    size = golden["batch_N"]
    for first in reversed(range(0, len(newest_first), size)):
        earlier = make_batch({"anchor": newest_first[first : first + size]}, views={})
        store.after_step(earlier, make_context(earlier))
    found = store.candidates(batch, make_context(batch))
    assert found is not None
    return found


def losses(golden: dict[str, Any], case: dict[str, Any], **options: Any) -> Tensor:
    batch = batch_of(golden)
    loss = make_part("loss", "twins", temperature=golden["temp"], **options)
    found = stored(golden, case, batch)
    batch = replace(batch, stored={"hippocampus": found})
    negatives = core.negatives_for_loss(batch, loss.options, ["hippocampus"])
    assert negatives.blocks == (("in-batch", 4), ("hippocampus", 8))
    value: Tensor = loss(batch, batch.targets["identical"], negatives, make_context(batch)).value
    return value


@pytest.mark.parametrize("number", CASES)
def test_the_coefficients(golden: dict[str, Any], number: int) -> None:
    case = golden["cases"][number]
    found = stored(golden, case, batch_of(golden))
    assert torch.equal(found.vectors, tensor(golden["queue_newest_first"]))
    wanted = tensor(case["p_m (m=1 is newest batch)"]).expand(4, -1)
    assert torch.allclose(found.log_weights.exp(), wanted, rtol=0, atol=golden["suggested_atol"])
    assert found.age.tolist() == [1] * 4 + [2] * 4


@pytest.mark.parametrize("number", CASES)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_whole_objective(golden: dict[str, Any], number: int, reduction: str) -> None:
    case = golden["cases"][number]
    value = float(losses(golden, case, reduction=reduction))
    wanted = case[f"total_{reduction}_over_batch"]
    assert value == pytest.approx(wanted, rel=0, abs=golden["suggested_atol"])


def term_of(
    golden: dict[str, Any], case: dict[str, Any], term: str, rows: list[int]
) -> tuple[Tensor, list[float]]:
    """Return the sum of one term over the anchors that have an identical twin, and the file's."""
    off = {name: 0.0 for name in ("identical", "fraternal", "margin") if name != term}
    loss = make_part("loss", "twins", temperature=golden["temp"], reduction="sum", **off)
    batch = batch_of(golden)
    held = replace(batch, stored={"hippocampus": stored(golden, case, batch)})
    negatives = core.negatives_for_loss(held, loss.options, ["hippocampus"])
    weights = torch.zeros(4, 1, dtype=torch.float64)
    weights[rows] = 1
    targets = replace(batch.targets["identical"], weights=weights)
    wanted = case[f"loss_{'twins' if term == 'margin' else term}_per_sample"]
    return loss(batch, targets, negatives, make_context(batch)).value, wanted


@pytest.mark.parametrize("number", CASES)
@pytest.mark.parametrize("term", ["identical", "margin"])
def test_the_terms_of_each_sentence(golden: dict[str, Any], number: int, term: str) -> None:
    for row in range(4):
        value, wanted = term_of(golden, golden["cases"][number], term, [row])
        assert float(value) == pytest.approx(wanted[row], rel=0, abs=golden["suggested_atol"])


@pytest.mark.parametrize("number", CASES)
@pytest.mark.parametrize("term", ["identical", "fraternal", "margin"])
def test_each_term_of_the_batch(golden: dict[str, Any], number: int, term: str) -> None:
    value, wanted = term_of(golden, golden["cases"][number], term, [0, 1, 2, 3])
    assert float(value) == pytest.approx(sum(wanted), rel=0, abs=golden["suggested_atol"])


@pytest.mark.parametrize("number", CASES)
def test_the_innate_margin(golden: dict[str, Any], number: int) -> None:
    batch = batch_of(golden)
    loss = make_part("loss", "twins")
    found = loss(
        batch, batch.targets["identical"], core.no_negatives(batch), make_context(batch)
    ).parts["innate_margin"]
    wanted = golden["cases"][number]["margin_M"]
    assert float(found) == pytest.approx(
        sum(wanted) / len(wanted), rel=0, abs=golden["suggested_atol"]
    )


def test_embeddings_have_no_gradient_from_the_margin(golden: dict[str, Any]) -> None:
    batch = batch_of(golden)
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
