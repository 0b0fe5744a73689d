"""The kit over SNCSE's distribution, parts and recipe."""

from pathlib import Path
from typing import Any

import torch
from cse_testkit import part_suites, recipe_suites
from torch import Tensor

from cse_core.types import Batch, Negatives, Positives, StepContext


def slow_bml(
    self: Any,
    batch: Batch,
    targets: Positives,
    negatives: Negatives,
    ctx: StepContext,
    options: Any,
) -> float:
    """Return the loss in loops: each anchor with its own soft negative and positives."""

    def cosine(one: Tensor, other: Tensor) -> float:
        return float(torch.cosine_similarity(one, other, dim=0))

    soft = batch.views[options.view][batch.level]
    total = 0.0
    for a, anchor in enumerate(batch.anchors):
        (own,) = [
            n
            for n in range(len(soft))
            if soft.owner[n] == batch.owner[a] and soft.slot[n] == batch.slot[a]
        ]
        terms = []
        for positive in targets.vectors[a]:
            gap = cosine(anchor, soft.vectors[own]) - cosine(anchor, positive)
            terms.append(max(0.0, gap + options.alpha) + max(0.0, -gap - options.beta))
        total += sum(terms) / len(terms)
    return total / len(batch.anchors)


globals().update(recipe_suites("cse-sncse", Path(__file__).parent / "settings"))
globals().update(
    part_suites(
        "cse-sncse",
        {
            "aug.negation": {
                "variants": ({"method": "column", "column": "negated"}, {"views": ["positive"]})
            },
            "pool.mask-prompt": {
                "variants": (
                    {
                        "anchor": "[MASK] is what the sentence [X] says",
                        "positive": "[MASK] is what [X] says",
                        "full_stop": False,
                    },
                )
            },
            "loss.bml": {"options": {"alpha": 0.2, "beta": 0.25, "weight": 1.0}, "slow": slow_bml},
        },
    )
)
