"""The terms of the objective in loops."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from cse_testkit import make_batch, make_context, make_part
from torch import Tensor

from cse_core.types import Batch
from cse_engine.step import negatives as core
from tests.fixtures.equations import equation

TEMPERATURE, FORGETTING = 0.05, 0.3


def exponential(one: Tensor, other: Tensor, temperature: float = 1.0) -> float:
    return math.exp(float(torch.cosine_similarity(one, other, dim=0)) / temperature)


def slow_terms(
    batch: Batch, queue: list[Tensor], temperature: float = TEMPERATURE
) -> dict[str, list[float]]:
    """Return each term of every anchor, and its innate margin M.

    ``queue`` has the vectors of earlier batches, the newest batch first: a row weighs less by
    lambda for each batch that it is away, Eq. 4. Of the batch all but the own twin is a negative.
    """
    views = {name: view["sentence"].vectors for name, view in batch.views.items()}
    inputs = {name: view["input"].vectors for name, view in batch.views.items()}
    found: dict[str, list[float]] = {
        name: [] for name in ("identical", "fraternal", "innate_margin", "margin")
    }
    for i, anchor in enumerate(batch.anchors):
        identical, fraternal = views["identical"][i], views["positive"][i]
        mass = own = exponential(anchor, identical, temperature)
        for j, other in enumerate(views["identical"]):
            mass += exponential(anchor, other, temperature) if j != i else 0
        for m, other in enumerate(queue, start=1):
            share = 1 - FORGETTING * math.ceil(m / len(batch.anchors))
            mass += share * exponential(anchor, other, temperature)
        found["identical"].append(-math.log(own / mass))
        own = exponential(anchor, fraternal, temperature)
        mass = sum(exponential(anchor, other, temperature) for other in views["positive"])
        found["fraternal"].append(-math.log(own / mass))
        innate = exponential(inputs["anchor"][i], inputs["identical"][i])
        innate -= exponential(inputs["anchor"][i], inputs["positive"][i])
        found["innate_margin"].append(innate)
        learned = exponential(anchor, identical) - exponential(anchor, fraternal)
        found["margin"].append(abs(learned - innate))
    return found


def both(reduction: str = "mean") -> tuple[Any, dict[str, list[float]]]:
    """Return the part's output and the loops' terms, with two earlier batches in the queue."""
    store = make_part("negatives", "hippocampus", batches=2, forgetting=FORGETTING)
    queue: list[Tensor] = []
    for step in (1, 2):
        earlier = make_batch(sentences=4, rows=range(10 * step, 10 * step + 4), seed=step)
        store.after_step(earlier, make_context(earlier))
        queue = [*earlier.anchors, *queue]
    views: Any = {"identical": "positive", "positive": "positive"}
    rows = range(100, 104)
    plain = make_batch(views=views, levels=("input",), rows=rows)
    held = store.candidates(plain, make_context(plain))
    stored = {store.name: held}
    batch = make_batch(views=views, levels=("input",), rows=rows, stored=stored)
    loss = make_part("loss", "twins", temperature=TEMPERATURE, reduction=reduction)
    negatives = core.negatives_for_loss(batch, loss.options, [store.name])
    assert negatives.blocks == (("in-batch", 4), ("hippocampus", 8))
    output = loss(batch, batch.targets["identical"], negatives, make_context(batch))
    return output, slow_terms(batch, queue)


@equation(
    "IFCL",
    "Eqs. 5 to 8, the cosine, both terms, the innate margin and the twins loss",
    "loss twins",
)
def test_the_terms_with_the_queue() -> Iterator[tuple[Tensor, float]]:
    output, terms = both("sum")
    for name in ("identical", "fraternal", "margin"):
        yield output.parts[name], sum(terms[name])
    yield output.parts["innate_margin"], sum(terms["innate_margin"]) / 4


@equation("IFCL", "Eq. 9, the sum over the batch; its mean", "loss twins")
def test_the_sum() -> Iterator[tuple[Tensor, float]]:
    for reduction, count in (("sum", 1), ("mean", 4)):
        output, terms = both(reduction)
        whole = sum(sum(terms[name]) for name in ("identical", "fraternal", "margin"))
        yield output.value, whole / count
