"""InfoNCE against a slow loop in fp64."""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from cse_testkit import make_batch
from torch import Tensor

from cse_core.types import Batch, LossOutput, Negatives
from cse_defaults.basics.infonce import Infonce
from cse_defaults.basics.options import InfonceOptions
from cse_engine.step.negatives import negatives_for_loss, reversed_batch


def run(options: InfonceOptions, batch: Batch, negatives: Negatives) -> LossOutput:
    loss = Infonce(options, cast(Any, SimpleNamespace(name="infonce")))
    return loss(batch, batch.targets[options.target], negatives, cast(Any, None))


def made(
    anchors: int, positives: int, owner: list[int] | None = None, weights: Tensor | None = None
) -> Batch:
    batch = make_batch(sentences=anchors, dimension=6, groups={"positive": positives})
    group = replace(batch.targets["positive"], weights=weights)
    batch = replace(batch, anchors=batch.anchors.requires_grad_(True), targets={"positive": group})
    if owner is None:
        return batch
    return replace(batch, owner=torch.tensor(owner), rows=torch.arange(max(owner) + 1))


def given(batch: Batch, count: int, *, seed: int = 1) -> Negatives:
    draws = torch.Generator().manual_seed(seed)
    shape = (len(batch.anchors), count)
    log_weights = torch.randn(shape, generator=draws, dtype=torch.float64)
    log_weights[torch.rand(shape, generator=draws) < 0.2] = -math.inf
    return Negatives.of(
        torch.randn(count, 6, generator=draws, dtype=torch.float64), len(batch.anchors),
        name="given", mask=torch.rand(shape, generator=draws) < 0.4, log_weights=log_weights,
    )  # fmt: skip


def similar(one: Tensor, other: Tensor, kind: str) -> float:
    product = float((one * other).sum())
    return product if kind == "dot" else product / (float(one.norm()) * float(other.norm()))


def slow(options: InfonceOptions, batch: Batch, negatives: Negatives) -> float:
    targets, total, counted = batch.targets["positive"], 0.0, 0
    for i, anchor in enumerate(batch.anchors):
        below = 0.0
        for n, other in enumerate(negatives.vectors):
            if not negatives.mask[i, n]:
                weight = math.exp(float(negatives.log_weights[i, n]))
                below += weight * math.exp(
                    similar(anchor, other, options.similarity) / options.temperature
                )
        terms, weights = [], []
        for p, positive in enumerate(targets.vectors[i]):
            above = math.exp(similar(anchor, positive, options.similarity) / options.temperature)
            terms.append(-math.log(above / (above + below)))
            weights.append(1.0 if targets.weights is None else float(targets.weights[i, p]))
        if sum(weights):
            total += sum(t * w for t, w in zip(terms, weights, strict=True)) / sum(weights)
            counted += 1
    return total if options.reduction == "sum" else total / max(counted, 1)


@pytest.mark.parametrize(
    "anchors, positives, count, kind, reduction",
    [
        (5, 1, 7, "cosine", "mean"), (5, 3, 7, "dot", "sum"), (1, 1, 4, "cosine", "mean"),
        (4, 1, 0, "cosine", "mean"), (1, 2, 0, "dot", "mean"), (3, 2, 1, "cosine", "sum"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("weighted", [False, True])
def test_it_equals_a_slow_loop(
    anchors: int, positives: int, count: int, kind: Any, reduction: Any, weighted: bool
) -> None:
    options = InfonceOptions(temperature=0.4, similarity=kind, reduction=reduction)
    weights = None
    if weighted:
        weights = torch.rand(anchors, positives, dtype=torch.float64)
        weights[0] = 0.0
        weights[-1, -1] = 0.0
    batch = made(anchors, positives, weights=weights)
    negatives = given(batch, count)
    value = run(options, batch, negatives).value
    assert float(value) == pytest.approx(slow(options, batch, negatives), abs=1e-10)
    value.backward()
    assert batch.anchors.grad is not None and bool(batch.anchors.grad.isfinite().all())


def test_everything_masked_is_no_loss_and_no_nan() -> None:
    batch = made(3, 1)
    negatives = given(batch, 4)
    negatives.mask.fill_(True)
    value = run(InfonceOptions(), batch, negatives).value
    value.backward()
    assert float(value) == 0.0 and bool(batch.anchors.grad.isfinite().all())  # type: ignore[union-attr]


def wanted_pairs(batch: Batch, options: InfonceOptions) -> list[list[Tensor]]:
    targets, found = batch.targets["positive"], []
    for i in range(len(batch.anchors)):
        mine = []
        for j in range(len(batch.anchors)):
            if batch.owner[i] == batch.owner[j]:
                continue
            if options.in_batch in ("target", "both"):
                mine += [
                    v
                    for p, v in enumerate(targets.vectors[j])
                    if targets.weights is None or targets.weights[j, p] > 0
                ]
            if options.in_batch in ("anchor", "both"):
                mine.append(batch.anchors[j])
        found.append(mine)
    return found


def seen(negatives: Negatives) -> list[set[tuple[float, ...]]]:
    return [
        {tuple(v.tolist()) for v, masked in zip(negatives.vectors, row, strict=True) if not masked}
        for row in negatives.mask
    ]


@pytest.mark.parametrize("sides", ["target", "anchor", "both"])
@pytest.mark.parametrize("positives", [1, 2])
def test_in_batch_negatives_of_both_directions(sides: Any, positives: int) -> None:
    options = InfonceOptions(in_batch=sides, directions="both", temperature=0.5)
    weights = torch.ones(5, positives, dtype=torch.float64)
    weights[2, -1] = 0.0
    batch = made(5, positives, owner=[0, 0, 1, 2, 2], weights=weights)
    forward = negatives_for_loss(batch, options, ())
    expected = wanted_pairs(batch, options)
    assert seen(forward) == [{tuple(v.tolist()) for v in row} for row in expected]
    turned, back = reversed_batch(batch, "positive")
    backward = negatives_for_loss(batch, options, (), seen_by=turned)
    for place, (i, p) in enumerate(itertools.product(range(5), range(positives))):
        others = [j for j in range(5) if batch.owner[j] != batch.owner[i]]
        wanted: list[Tensor] = []
        if sides in ("target", "both"):
            wanted += [batch.anchors[j] for j in others]
        if sides in ("anchor", "both"):
            vectors = batch.targets["positive"].vectors
            wanted += [vectors[j, q] for j in others for q in range(positives) if weights[j, q]]
        unmasked = backward.vectors[~backward.mask[place]]
        assert len(unmasked) == len(wanted)
        assert seen(backward)[place] == {tuple(v.tolist()) for v in wanted}
        assert torch.equal(back.vectors[place, 0], batch.anchors[i])
        assert back.weights is not None and float(back.weights[place, 0]) == float(weights[i, p])
    value = run(options, turned, backward).value
    assert float(value) == pytest.approx(slow(options, turned, backward), abs=1e-10)
