"""The kit over the distribution, its parts and its recipe, with slow versions of the losses."""

from pathlib import Path
from typing import Any

import torch
from cse_testkit import part_suites, recipe_suites
from torch import Tensor
from torch.nn.functional import cosine_similarity

from cse_core.types import Batch, Negatives, Positives, StepContext

SECOND = {"anchor": "second-anchor", "positive": "second-positive"}


def cosine(one: Tensor, other: Tensor) -> Tensor:
    return cosine_similarity(one, other, dim=0, eps=1e-8)


def vector(batch: Batch, view: str, owner: int, level: str = "sentence") -> Tensor:
    rows = batch.views[view][level]
    return rows.vectors[rows.owner.tolist().index(owner)]


def slow_two_encoders(
    self: Any,
    batch: Batch,
    targets: Positives,
    negatives: Negatives,
    ctx: StepContext,
    options: Any,
) -> Tensor:
    """Two losses of each anchor, logit by logit: of the second encoder, and across."""
    origins = [negatives.views[name] for name, count in negatives.blocks for _ in range(count)]
    weights = {"second": options.second, "across": options.across}
    total = torch.zeros((), dtype=torch.float64)
    for a, owner in enumerate(batch.owner.tolist()):
        anchors = {"second": vector(batch, SECOND["anchor"], owner), "across": batch.anchors[a]}
        for name, anchor in anchors.items():
            logits = [cosine(anchor, vector(batch, SECOND["positive"], owner))]
            shifts = [torch.zeros((), dtype=torch.float64)]
            for n, other in enumerate(negatives.owner.tolist()):
                if not negatives.mask[a, n]:
                    logits.append(cosine(anchor, vector(batch, SECOND[origins[n]], other)))
                    shifts.append(negatives.log_weights[a, n])
            scaled = torch.stack(logits) / options.temperature + torch.stack(shifts)
            total = total + weights[name] * (torch.logsumexp(scaled, 0) - scaled[0])
    return total / len(batch.anchors)


def slow_norms(
    self: Any,
    batch: Batch,
    targets: Positives,
    negatives: Negatives,
    ctx: StepContext,
    options: Any,
) -> Tensor:
    """The logarithm of a pair's cosine times the distance of two norms, pair by pair."""
    terms = []
    for anchor, owner in zip(batch.anchors, batch.owner.tolist(), strict=True):
        near = cosine(anchor, vector(batch, SECOND["positive"], owner))
        if near <= 0:
            near = near.new_tensor(options.floor)
        one = vector(batch, "anchor", owner, "pooled")
        other = vector(batch, SECOND["positive"], owner, "pooled")
        apart = (one - other).norm() / (one.norm() + other.norm())
        terms.append(-near.log() * apart / (2 if options.ratio == "published" else 1))
    return torch.stack(terms).mean()


SUITES: dict[str, dict[str, Any]] = {
    "loss.two-encoders": {
        "slow": slow_two_encoders,
        "options": {"directions": "one", "second": 0.3, "across": 0.7},
        "variants": ({"directions": "both", "temperature": 0.2},),
    },
    "loss.norm-constraint": {
        "slow": slow_norms,
        "options": {"directions": "one"},
        "variants": ({"ratio": "published", "floor": 0.01},),
    },
}
globals().update(part_suites("cse-tncse", SUITES))
globals().update(recipe_suites("cse-tncse", Path(__file__).parent / "settings"))
