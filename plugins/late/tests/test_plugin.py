"""The kit over the distribution, its parts and its recipe, with slow versions of the losses."""

from pathlib import Path
from typing import Any

import torch
from cse_testkit import part_suites, recipe_suites
from torch import Tensor
from torch.nn.functional import cosine_similarity

from cse_core.types import Batch, Negatives, Positives, StepContext


def cosine(one: Tensor, other: Tensor) -> Tensor:
    return cosine_similarity(one, other, dim=0, eps=1e-8)


def slow_maxsim(
    self: Any,
    batch: Batch,
    targets: Positives,
    negatives: Negatives,
    ctx: StepContext,
    options: Any,
) -> Tensor:
    """Every pair of a query and a document, token by token."""
    queries, documents = (batch.views[view]["token"] for view in ("anchor", "positive"))

    def score(query: int, document: int) -> Tensor:
        total = torch.zeros((), dtype=torch.float64)
        for i in range(len(queries)):
            if queries.owner[i] == query:
                near = [
                    cosine(queries.vectors[i], documents.vectors[j])
                    for j in range(len(documents))
                    if documents.owner[j] == document
                ]
                total = total + torch.stack(near).max()
        return total / options.temperature

    losses = []
    for a, owner in enumerate(batch.owner.tolist()):
        positive = score(owner, owner)
        logits = [positive]
        for n, other in enumerate(negatives.owner.tolist()):
            if not negatives.mask[a, n]:
                logits.append(score(owner, other) + negatives.log_weights[a, n])
        losses.append(torch.logsumexp(torch.stack(logits), 0) - positive)
    return torch.stack(losses).mean()


def slow_insent(
    self: Any,
    batch: Batch,
    targets: Positives,
    negatives: Negatives,
    ctx: StepContext,
    options: Any,
) -> Tensor:
    """Two cross entropies of each query whose chunk is there, with a weight of 1/2."""
    chunks, numbers = batch.views["positive"]["chunk"], ctx.values("chunk").tolist()
    losses = []
    for anchor, owner in zip(batch.anchors, batch.owner.tolist(), strict=True):
        logits = [cosine(anchor, vector) / options.temperature for vector in chunks.vectors]
        own = [i for i in range(len(chunks)) if chunks.owner[i] == owner]
        if not 0 <= numbers[owner] < len(own):
            continue
        gold = own[int(numbers[owner])]
        others = [gold, *(i for i in range(len(chunks)) if i not in own)]
        for seen in (own, others):
            sums = torch.logsumexp(torch.stack([logits[i] for i in seen]), 0)
            losses.append((sums - logits[gold]) / 2)
    return 2 * torch.stack(losses).mean() if losses else torch.zeros(())


SUITES: dict[str, dict[str, Any]] = {
    "pool.chunk-vectors": {
        "variants": (
            {"size": 2},
            {"by": "sentences", "size": 1},
            {"by": "separator", "separator": "a"},
        )
    },
    "loss.maxsim": {
        "slow": slow_maxsim,
        "variants": ({"score": "mean", "temperature": 0.1, "directions": "both"},),
    },
    "loss.insent": {
        "slow": slow_insent,
        "columns": {"chunk": [0, 1, 0, 1]},
        "variants": ({"sequence_weight": 0.1},),
    },
}
globals().update(part_suites("cse-late", SUITES))
globals().update(recipe_suites("cse-late", Path(__file__).parent / "settings"))
