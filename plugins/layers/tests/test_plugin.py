"""The kit over the distribution, its parts and its recipe, with a slow version of the loss."""

import math
from typing import Any

import torch
from cse_testkit import part_suites, recipe_suites
from torch import Tensor
from torch.nn.functional import cosine_similarity, kl_div

from cse_core.types import Batch, Negatives, Positives, StepContext


def cosine(one: Tensor, other: Tensor) -> Tensor:
    return cosine_similarity(one, other, dim=0, eps=1e-8)


def slow(
    self: Any,
    batch: Batch,
    targets: Positives,
    negatives: Negatives,
    ctx: StepContext,
    options: Any,
) -> Tensor:
    """The only layer of the tiny encoder before its last one, row by row."""
    rows = {}
    for view in ("anchor", "positive"):
        level = batch.views[view]["layer"]
        for number in range(len(level)):
            if level.slot[number] == 0:
                rows[view, int(level.owner[number])] = level.vectors[number]
    owners, losses, far = batch.owner.tolist(), [], []
    for a, owner in enumerate(owners):
        anchor = rows["anchor", owner]
        positive = cosine(anchor, rows["positive", owner]) / options.temperature
        logits = [positive]
        for n, other in enumerate(negatives.owner.tolist()):
            if not negatives.mask[a, n]:
                near = cosine(anchor, rows["positive", other]) / options.temperature
                logits.append(near + negatives.log_weights[a, n])
        losses.append(torch.logsumexp(torch.stack(logits), 0) - positive)
        t = options.align_temperature
        for view, last in (("anchor", batch.anchors[a]), ("positive", targets.vectors[a, 0])):
            layer = rows[view, owner]
            far.append(kl_div((layer / t).log_softmax(0), (last / t).softmax(0), reduction="sum"))
    weight = {"uniform": 1, "log": 1 / (1 + math.log(2)), "linear": 1 / 2}[options.weighting]
    aligned = options.align * options.align_temperature * torch.stack(far).mean()
    return torch.stack(losses).mean() * weight + aligned


SUITES: dict[str, dict[str, Any]] = {
    "pool.layer-vectors": {"variants": ({"tokens": "first"},)},
    "loss.every-layer": {
        "slow": slow,
        "options": {"weighting": "log", "align": 0.7},
        "variants": ({"layers": 0, "weighting": "linear", "align": 0.0},),
    },
}
globals().update(part_suites("cse-layers", SUITES))
globals().update(recipe_suites("cse-layers"))
