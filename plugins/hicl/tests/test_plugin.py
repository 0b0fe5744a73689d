"""The kit over HiCL's distribution and parts."""

from __future__ import annotations

import math
from typing import Any

import torch
from cse_testkit import (
    LossSuite,
    MinerSuite,
    PluginSuite,
    PoolerSuite,
    StoreSuite,
)

from cse_core.types import Batch, Negatives, Positives, StepContext

SHORT = {"length": 4}
"""Segments of this length, so that the kit's short texts have several."""


class TestPlugin(PluginSuite):
    distribution = "cse-hicl"


class TestSegments(PoolerSuite):
    part = ("pool", "segments")
    options = SHORT
    variants = ({**SHORT, "wrap": "sentence", "aggregate": "mean", "join": "before-heads"},)


class TestSameSequence(MinerSuite):
    part = ("positives", "same-sequence")
    sets = ("pool.segments.length=4",)


class TestAveraging(StoreSuite):
    part = ("negatives", "averaging")
    sets = ("pool.segments.length=4",)


class TestEntailment(LossSuite):
    """From each segment to its own sentence among all, in loops."""

    part = ("loss", "entailment")
    sets = ("pool.segments.length=4",)

    def slow(
        self,
        batch: Batch,
        targets: Positives,
        negatives: Negatives,
        ctx: StepContext,
        options: Any,
    ) -> float:
        sentences = batch.views["anchor"]["sentence"]
        total = 0.0
        for anchor, owner in zip(batch.anchors, batch.owner.tolist(), strict=True):
            masses = {}
            for row, other in enumerate(sentences.owner.tolist()):
                cosine = torch.cosine_similarity(anchor, sentences.vectors[row], dim=0)
                masses[other] = math.exp(float(cosine) / options.temperature)
            total -= math.log(masses[owner] / sum(masses.values()))
        return total / len(batch.anchors)
