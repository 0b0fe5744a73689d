"""Segments of one text as positives, as negatives, as neither; negatives averaged by text."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from cse_testkit import make_batch, make_context, make_part
from torch import Tensor

from cse_core.engine import negatives as core
from cse_core.options import LossOptions
from cse_core.types import Batch, Negatives, Positives

TEMPERATURE = 0.5


def batch_of(counts: list[int], *, shuffled: bool = False, seed: int = 0) -> Batch:
    """Return a batch of segments, so many of each text."""
    owner = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    slot = torch.cat([torch.arange(count) for count in counts])
    if shuffled:
        order = torch.randperm(len(owner), generator=torch.Generator().manual_seed(seed))
        owner, slot = owner[order], slot[order]
    drawn = make_batch(sentences=len(owner), level="segment", seed=seed, dimension=4)
    return replace(
        drawn, owner=owner, slot=slot, rows=torch.arange(len(counts)) * 3, level="segment"
    )


def exponential(one: Tensor, other: Tensor) -> float:
    return math.exp(float(torch.cosine_similarity(one, other, dim=0)) / TEMPERATURE)


def loss_of(batch: Batch, target: str, negatives: Negatives) -> float:
    loss = make_part("loss", "infonce", temperature=TEMPERATURE)
    return float(loss(batch, batch.targets[target], negatives, make_context(batch)).value)


def with_siblings(batch: Batch, **options: Any) -> tuple[Batch, Positives]:
    miner = make_part("positives", "same-sequence", **options)
    group = miner.mine(batch, make_context(batch))["same-sequence"]
    return replace(batch, targets={**batch.targets, "same-sequence": group}), group


@pytest.mark.parametrize("shuffled", [False, True])
def test_positives_are_all_segments_of_the_text(shuffled: bool) -> None:
    batch, group = with_siblings(batch_of([3, 1, 5, 2], shuffled=shuffled))
    second = batch.targets["positive"].vectors[:, 0]
    assert group.vectors.shape == (11, 11, 4) and group.weights is not None
    for a in range(11):
        found = [v for v, w in zip(group.vectors[a], group.weights[a], strict=True) if w > 0]
        mine = [second[b] for b in range(11) if batch.owner[b] == batch.owner[a]]
        assert len(found) == len(mine)
        assert torch.equal(found[0], second[a]), "its own comes first"
        for vector in mine:
            assert sum(torch.equal(vector, other) for other in found) == 1


def test_no_more_than_most_of_a_long_text() -> None:
    """Each segment takes the next ones of its text in a circle, so none is taken more often."""
    batch, group = with_siblings(batch_of([5, 1]), most=3)
    second = batch.targets["positive"].vectors[:, 0]
    assert group.vectors.shape == (6, 3, 4) and group.weights is not None
    assert group.weights.tolist() == [[1, 1, 1]] * 5 + [[1, 0, 0]]
    for a in range(5):
        for step in range(3):
            assert torch.equal(group.vectors[a, step], second[(a + step) % 5])


@pytest.mark.parametrize("in_batch", ["target", "anchor"])
def test_segments_as_positives_in_loops(in_batch: str) -> None:
    """Mean of -log p over one's own text's segments; each segment of other texts counts once."""
    batch, _ = with_siblings(batch_of([3, 1, 2]))
    options = LossOptions(target="same-sequence", in_batch=in_batch)
    found = loss_of(batch, "same-sequence", core.negatives_for_loss(batch, options, ()))
    second = batch.targets["positive"].vectors[:, 0]
    others = second if in_batch == "target" else batch.anchors
    total = 0.0
    for a, anchor in enumerate(batch.anchors):
        mass = sum(
            exponential(anchor, others[b]) for b in range(6) if batch.owner[b] != batch.owner[a]
        )
        terms = [
            -math.log(exponential(anchor, second[b]) / (exponential(anchor, second[b]) + mass))
            for b in range(6)
            if batch.owner[b] == batch.owner[a]
        ]
        total += sum(terms) / len(terms)
    assert found == pytest.approx(total / 6, rel=1e-12)


@pytest.mark.parametrize("in_batch", ["target", "anchor", "both"])
@pytest.mark.parametrize("averaged", [False, True])
@pytest.mark.parametrize("siblings", ["mask", "keep"])
def test_negatives_in_loops(in_batch: str, averaged: bool, siblings: str) -> None:
    batch = batch_of([3, 1, 2])
    options = LossOptions(in_batch=in_batch, same_sentence=siblings)
    negatives = core.negatives_for_loss(batch, options, ())
    if averaged:
        store = make_part("negatives", "averaging")
        negatives = store.weigh(negatives, batch, make_context(batch))
    found = loss_of(batch, "positive", negatives)
    second = batch.targets["positive"].vectors[:, 0]
    sides = {"target": [second], "anchor": [batch.anchors], "both": [second, batch.anchors]}
    count = torch.bincount(batch.owner).tolist()
    total = 0.0
    for a, anchor in enumerate(batch.anchors):
        mass = 0.0
        for side in sides[in_batch]:
            for b in range(6):
                own = batch.owner[b] == batch.owner[a]
                if a != b and (siblings == "keep" or not own):
                    weight = 1 / count[int(batch.owner[b])] if averaged else 1
                    mass += weight * exponential(anchor, side[b])
        positive = exponential(anchor, second[a])
        total -= math.log(positive / (positive + mass))
    assert found == pytest.approx(total / 6, rel=1e-12)


def test_averaging_counts_by_block_row_and_age() -> None:
    """What a queue holds of one text at two ages is two texts; of no known row, it is alone."""
    batch = batch_of([2, 1])
    vectors = torch.ones(3, 4, dtype=torch.float64)

    def block(name: str, row: list[int], age: list[int]) -> Negatives:
        return Negatives.of(
            vectors[:1].expand(len(row), 4),
            3,
            name=name,
            row=torch.tensor(row),
            age=torch.tensor(age),
        )

    given = Negatives.join(
        [
            block("in-batch", [0, 0, 3], [0, 0, 0]),
            block("queue", [0, 0, 0, -1, -1], [1, 2, 2, 0, 0]),
        ]
    )
    weighed = make_part("negatives", "averaging").weigh(given, batch, make_context(batch))
    weights = weighed.log_weights.exp()
    assert torch.allclose(
        weights, torch.tensor([[0.5, 0.5, 1, 1, 0.5, 0.5, 1, 1]], dtype=torch.float64).expand(3, 8)
    )


def test_a_text_alone_in_the_batch_has_no_loss() -> None:
    """No other text, no negatives: the local loss is zero, its gradient too."""
    batch = batch_of([16])
    anchors = batch.anchors.clone().requires_grad_(True)
    batch = replace(batch, anchors=anchors)
    loss = make_part("loss", "infonce", temperature=0.05)
    negatives = core.negatives_for_loss(batch, LossOptions(), ())
    value = loss(batch, batch.targets["positive"], negatives, make_context(batch)).value
    assert float(value.detach()) == 0.0
    (gradient,) = torch.autograd.grad(value, anchors)
    assert not gradient.any()
