"""HiCLv2's third term: which texts are negatives, and what is refused."""

from __future__ import annotations

import math

import pytest
import torch
from cse_testkit import make_batch, make_context, make_part

from cse_core.types import Batch

TEMPERATURE = 0.5


def in_loops(batch: Batch, sentences: str, negatives: dict[int, list[int]]) -> float:
    """Return the mean over the segments; ``negatives`` are the other texts that a text has."""
    texts = batch.views[sentences]["sentence"].vectors
    total = 0.0
    for anchor, own in zip(batch.anchors, batch.owner.tolist(), strict=True):
        mass = {
            text: math.exp(float(torch.cosine_similarity(anchor, texts[text], dim=0)) / TEMPERATURE)
            for text in (own, *negatives[own])
        }
        total -= math.log(mass[own] / sum(mass.values()))
    return total / len(batch.anchors)


def test_equal_texts_are_no_negatives_of_each_other() -> None:
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
            mean, summed = (
                make_part("loss", "entailment", temperature=TEMPERATURE, reduction=how, **options)(
                    batch, target, None, ctx
                ).value
                for how in ("mean", "sum")
            )
            wanted = in_loops(batch, sentences, negatives)
            assert float(mean) == pytest.approx(wanted, rel=1e-12)
            assert float(summed) == pytest.approx(8 * wanted, rel=1e-12)
