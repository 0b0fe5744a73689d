"""Segments of one sentence among the negatives, and positives that several anchors share."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from cse_testkit import make_batch

from cse_core.engine import negatives as of
from cse_core.options import LossOptions
from cse_core.types import Batch, Negatives, Positives

KEPT = LossOptions(same_sentence="keep")


def batch() -> Batch:
    """Return three sentences of two segments each."""
    return make_batch(sentences=3, segments=2, level="segment")


def pairs(negatives: Negatives, row: int) -> list[int]:
    return (~negatives.mask[row]).nonzero().squeeze(1).tolist()


def test_segments_of_ones_own_sentence_are_no_negatives_by_default() -> None:
    negatives = of.of_loss(batch(), LossOptions(), ())
    assert pairs(negatives, 0) == [2, 3, 4, 5] and pairs(negatives, 3) == [0, 1, 4, 5]


@pytest.mark.parametrize("same_text", ["mask", "keep"])
def test_they_can_be_kept(same_text: str) -> None:
    """One's own segment is masked still, whatever is done with equal texts."""
    negatives = of.of_loss(batch(), KEPT.model_copy(update={"same_text": same_text}), ())
    assert pairs(negatives, 0) == [1, 2, 3, 4, 5] and pairs(negatives, 3) == [0, 1, 2, 4, 5]


def test_another_sentence_of_the_same_text_is_masked_where_own_segments_are_kept() -> None:
    doubled = make_batch(sentences=3, segments=2, level="segment", same_text={1: 0})
    negatives = of.of_loss(doubled, KEPT, ())
    assert pairs(negatives, 0) == [1, 4, 5] and pairs(negatives, 2) == [3, 4, 5]


def test_a_document_masks_others_but_not_kept_segments() -> None:
    joined = make_batch(sentences=3, segments=2, level="segment", documents=[0, 0, 1])
    options = KEPT.model_copy(update={"same_document": "mask"})
    assert pairs(of.of_loss(joined, options, ()), 0) == [1, 4, 5]


def test_what_a_store_holds_of_ones_own_text_stays_masked() -> None:
    rows = batch()
    stored = Negatives.of(rows.anchors[:2], 6, name="queue", row=torch.tensor([0, 1]))
    rows = replace(rows, stored={"queue": stored})
    negatives = of.of_loss(rows, KEPT, ["queue"])
    assert pairs(negatives, 0) == [1, 2, 3, 4, 5, 7]


@pytest.mark.parametrize("sides", ["target", "anchor", "both"])
def test_the_second_direction_keeps_them_too(sides: str) -> None:
    options = KEPT.model_copy(update={"in_batch": sides, "directions": "both"})
    rows = batch()
    turned, _ = of.reversed_batch(rows, "positive")
    negatives = of.of_reversed(rows, turned, options)
    once = [1, 2, 3, 4, 5]
    assert pairs(negatives, 0) == (once if sides != "both" else [*once, *(n + 6 for n in once)])


def test_a_shared_positive_is_a_negative_once() -> None:
    """Segments as each other's positives: four columns of twelve, those that ``distinct`` names."""
    rows = batch()
    own = rows.targets["positive"].vectors[:, 0]
    sibling = own[torch.tensor([1, 0, 3, 2, 5, 4])]
    weights = torch.ones(6, 2)
    weights[5] = 0
    group = Positives(torch.stack([own, sibling], dim=1), weights, torch.arange(6) * 2)
    rows = replace(rows, targets={"shared": group})
    negatives = of.of_loss(rows, LossOptions(target="shared"), ())
    assert len(negatives) == 6 and torch.equal(negatives.vectors, own)
    assert pairs(negatives, 0) == [2, 3, 4], "the absent one is masked"
    every = replace(rows, targets={"shared": replace(group, distinct=None)})
    assert len(of.of_loss(every, LossOptions(target="shared"), ())) == 12
