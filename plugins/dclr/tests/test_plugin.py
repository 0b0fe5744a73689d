"""The kit over DCLR's distribution and parts."""

from __future__ import annotations

import math
from typing import Any

import torch
from cse_testkit import LossSuite, PluginSuite, StoreSuite

from cse_core.types import Batch, Negatives, Positives, StepContext


class TestPlugin(PluginSuite):
    distribution = "cse-dclr"


class TestNoise(StoreSuite):
    part = ("negatives", "noise")
    options = {"times": 1.5}
    variants = ({"objective": "batch", "deviation": 0.5, "step_size": 0.1},)


class TestInstanceWeights(StoreSuite):
    part = ("negatives", "instance-weights")
    options = {"phi": 0.2, "center": True}


class TestInstanceWeightsOfTwoDropouts(StoreSuite):
    part = ("negatives", "instance-weights")
    options = {"phi": 0.5}
    sets = ("branch.frozen.mode=train",)


def _logits(
    a: int, p: int, batch: Batch, targets: Positives, negatives: Negatives, temperature: float
) -> tuple[float, list[tuple[float, float]]]:
    """Return an anchor's logit of a positive, and (logit, log-weight) of each negative it sees."""

    def cosine(other: torch.Tensor) -> float:
        return float(torch.cosine_similarity(batch.anchors[a], other, dim=0)) / temperature

    seen = [
        (cosine(negatives.vectors[n]), float(negatives.log_weights[a, n]))
        for n in range(len(negatives))
        if not bool(negatives.mask[a, n])
    ]
    return cosine(targets.vectors[a, p]), seen


class TestPaper(LossSuite):
    part = ("loss", "dclr")
    options = {"temperature": 0.3}

    def slow(
        self,
        batch: Batch,
        targets: Positives,
        negatives: Negatives,
        ctx: StepContext,
        options: Any,
    ) -> float:
        total = 0.0
        for a in range(len(batch.anchors)):
            own, seen = _logits(a, 0, batch, targets, negatives, options.temperature)
            mass = sum(math.exp(weight) * math.exp(logit) for logit, weight in seen)
            total -= math.log(math.exp(own) / (math.exp(own) + mass))
        return total / len(batch.anchors)


class TestPublished(LossSuite):
    part = ("loss", "dclr")
    options = {"variant": "published", "temperature": 0.3}

    def slow(
        self,
        batch: Batch,
        targets: Positives,
        negatives: Negatives,
        ctx: StepContext,
        options: Any,
    ) -> float:
        total = 0.0
        for a in range(len(batch.anchors)):
            own, seen = _logits(a, 0, batch, targets, negatives, options.temperature)
            logits = [own, *(math.exp(weight) * logit for logit, weight in seen)]
            mass = sum(math.exp(logit) for logit in logits)
            shares = [math.exp(logit) / mass for logit in logits]
            entropies = [-math.log(shares[0]), *(-math.log(1 - p) for p in shares[1:])]
            total += sum(entropies) / len(entropies)
        return total / len(batch.anchors)

    def promise_a_masked_candidate_does_not_count(self) -> None:
        """Masked for every anchor it changes nothing; of weight zero it stays in, as a logit 0."""
        batch = self.batch()
        targets, few = self.targets(batch), self.negatives(batch, 5, "some", "random")
        value = self.value(batch, targets, few)
        rows = len(batch.anchors)
        more = self.negatives(batch, 3, "all", "zero")
        assert torch.isclose(value, self.value(batch, targets, Negatives.join([few, more])))
        weightless = Negatives.of(
            more.vectors, rows, name="w", log_weights=torch.full((rows, 3), -torch.inf)
        )
        orthogonal = Negatives.of(torch.zeros_like(more.vectors), rows, name="o")
        one, other = (
            self.value(batch, targets, Negatives.join([few, each]))
            for each in (weightless, orthogonal)
        )
        assert torch.isclose(one, other) and not torch.isclose(one, value)
