"""The kit over SimCSE's distribution and parts."""

from __future__ import annotations

import math
from typing import Any

import torch
from cse_testkit import LossSuite, PluginSuite, PoolerSuite, StoreSuite
from torch import Tensor

from cse_core.types import Batch, Negatives, Positives, StepContext


class TestPlugin(PluginSuite):
    distribution = "cse-simcse"


class TestHardNegatives(StoreSuite):
    part = ("negatives", "hard-negatives")
    options = {"weight": 0.7}


class TestAvgTop2(PoolerSuite):
    part = ("pool", "avg-top2")


class TestInfonceInLoops(LossSuite):
    """Eq. 1 in loops, with masks, weights and several positives as the core defines them."""

    part = ("loss", "infonce")
    options = {"temperature": 0.3}

    def slow(
        self,
        batch: Batch,
        targets: Positives,
        negatives: Negatives,
        ctx: StepContext,
        options: Any,
    ) -> float:
        def exponential(one: Tensor, other: Tensor) -> float:
            cosine = float(torch.cosine_similarity(one, other, dim=0))
            return math.exp(cosine / options.temperature)

        total = 0.0
        for i, anchor in enumerate(batch.anchors):
            mass = 0.0
            for n in range(len(negatives.vectors)):
                if not bool(negatives.mask[i, n]):
                    weight = math.exp(float(negatives.log_weights[i, n]))
                    mass += weight * exponential(anchor, negatives.vectors[n])
            terms = []
            for positive in targets.vectors[i]:
                own = exponential(anchor, positive)
                terms.append(-math.log(own / (own + mass)))
            total += sum(terms) / len(terms)
        return total / len(batch.anchors)
