"""Segments of one text as positives, as negatives, as neither; averaged; entailment."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from cse_testkit import make_batch, make_context, make_part
from torch import Tensor

from cse_core.options import LossOptions
from cse_core.types import Batch, Negatives, Positives
from cse_engine.step import negatives as core
from tests.fixtures.equations import equation

TEMPERATURE = 0.5


def batch_of(counts: list[int], *, shuffled: bool = False) -> Batch:
    """Return a batch of segments, so many of each text."""
    owner = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    slot = torch.cat([torch.arange(count) for count in counts])
    if shuffled:
        order = torch.randperm(len(owner), generator=torch.Generator().manual_seed(0))
        owner, slot = owner[order], slot[order]
    drawn = make_batch(sentences=len(owner), level="segment", dimension=4)
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


def test_no_more_than_most_of_a_long_text() -> None:
    """Each segment takes the next ones of its text in a circle, so none is taken more often."""
    batch, group = with_siblings(batch_of([1, 5]), most=3)
    second = batch.targets["positive"].vectors[:, 0]
    assert group.vectors.shape == (6, 3, 4) and group.weights is not None
    assert group.weights.tolist() == [[1, 0, 0]] + [[1, 1, 1]] * 5
    for a in range(5):
        for step in range(3):
            assert torch.equal(group.vectors[1 + a, step], second[1 + (a + step) % 5])


@equation("HiCL", "Table 4, segments of one text as positives", "positives same-sequence")
def test_segments_as_positives_in_loops() -> Iterator[tuple[float, float]]:
    """Mean of -log p over one's own text's segments; each segment of other texts counts once."""
    batch, _ = with_siblings(batch_of([3, 1, 2], shuffled=True))
    second = batch.targets["positive"].vectors[:, 0]
    sides: Any = {"target": second, "anchor": batch.anchors}
    for in_batch, others in sides.items():
        options = LossOptions(target="same-sequence", in_batch=in_batch)
        found = loss_of(batch, "same-sequence", core.negatives_for_loss(batch, options, ()))
        total = 0.0
        for a, anchor in enumerate(batch.anchors):
            mine = [b for b in range(6) if batch.owner[b] == batch.owner[a]]
            mass = sum(exponential(anchor, others[b]) for b in range(6) if b not in mine)
            own = [exponential(anchor, second[b]) for b in mine]
            total -= sum(math.log(each / (each + mass)) for each in own) / len(own)
        yield found, total / 6


def test_averaging_counts_by_block_row_and_age() -> None:
    """What a queue holds of one text at two ages is two texts; of no known row, it is alone."""
    batch = batch_of([2, 1])
    vectors = torch.ones(3, 4, dtype=torch.float64)

    def block(name: str, row: list[int], age: list[int]) -> Negatives:
        keys = {"row": torch.tensor(row), "age": torch.tensor(age)}
        return Negatives.of(vectors[:1].expand(len(row), 4), 3, name=name, **keys)

    queued = block("queue", [0, 0, 0, -1, -1], [1, 2, 2, 0, 0])
    given = Negatives.join([block("in-batch", [0, 0, 3], [0, 0, 0]), queued])
    weighed = make_part("negatives", "averaging").weigh(given, batch, make_context(batch))
    wanted = torch.tensor([[0.5, 0.5, 1, 1, 0.5, 0.5, 1, 1]], dtype=torch.float64)
    assert torch.allclose(weighed.log_weights.exp(), wanted.expand(3, 8))


def in_loops(batch: Batch, sentences: str, negatives: dict[int, list[int]]) -> float:
    """Return the mean over the segments; ``negatives`` are the other texts that a text has."""
    texts = batch.views[sentences]["sentence"].vectors
    total = 0.0
    for anchor, own in zip(batch.anchors, batch.owner.tolist(), strict=True):
        mass = {text: exponential(anchor, texts[text]) for text in (own, *negatives[own])}
        total -= math.log(mass[own] / sum(mass.values()))
    return total / len(batch.anchors)


@equation("HiCL", "Eq. 3 (A.6)", "loss entailment")
def test_equal_texts_are_no_negatives_of_each_other() -> Iterator[tuple[float, float]]:
    """Texts 0 and 2 are one text; masked unless ``same_text`` keeps it."""
    batch = make_batch(
        sentences=4, segments=2, level="segment", levels=("sentence",), same_text={2: 0}
    )
    target, ctx = batch.targets["positive"], make_context(batch)
    for sentences in ("anchor", "positive"):
        for same_text, negatives in (
            ("mask", {0: [1, 3], 1: [0, 2, 3], 2: [1, 3], 3: [0, 1, 2]}),
            ("keep", {0: [1, 2, 3], 1: [0, 2, 3], 2: [0, 1, 3], 3: [0, 1, 2]}),
        ):
            options = {"sentences": sentences, "same_text": same_text}
            loss = make_part("loss", "entailment", temperature=TEMPERATURE, **options)
            value = float(loss(batch, target, None, ctx).value)
            yield value, in_loops(batch, sentences, negatives)
