"""The kit over DCLR's distribution and parts."""

from __future__ import annotations

import math
from typing import Any

import torch
from cse_testkit import LossSuite, StoreSuite, part_suites
from torch import Tensor

from cse_core.types import Batch, Negatives, Positives, StepContext

globals().update(
    part_suites(
        "cse-dclr",
        {
            "negatives.noise": {
                "options": {"times": 1.5},
                "variants": ({"objective": "batch", "deviation": 0.5, "step_size": 0.1},),
            },
            "negatives.instance-weights": {"options": {"phi": 0.2, "center": True}},
            "loss.dclr": {"options": {"temperature": 0.3}},
        },
    )
)


class TestInstanceWeightsOfTwoDropouts(StoreSuite):
    part = ("negatives", "instance-weights")
    options = {"phi": 0.5}
    sets = ("branch.frozen.mode=train",)


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
        def logit(anchor: Tensor, other: Tensor) -> float:
            return float(torch.cosine_similarity(anchor, other, dim=0)) / options.temperature

        total = 0.0
        for a, anchor in enumerate(batch.anchors):
            logits = [logit(anchor, targets.vectors[a, 0])]
            for n, negative in enumerate(negatives.vectors):
                if not bool(negatives.mask[a, n]):
                    weight = math.exp(float(negatives.log_weights[a, n]))
                    logits.append(weight * logit(anchor, negative))
            mass = sum(math.exp(each) for each in logits)
            shares = [math.exp(each) / mass for each in logits]
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
