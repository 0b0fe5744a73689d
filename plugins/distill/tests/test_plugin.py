"""The kit over the distribution and its parts, beside loops over texts and candidates."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch
from cse_testkit import LossSuite, part_suites, shared_encoder
from torch import Tensor

from cse_core.types import Batch, Negatives, Positives, StepContext

globals().update(part_suites("cse-distill"))  # a class of such a name takes its place


def close(one: Tensor, other: Tensor, kind: str) -> float:
    if kind == "dot":
        return float(one @ other)
    return float(torch.cosine_similarity(one, other, dim=0))


def lists(
    batch: Batch, targets: Positives, ctx: StepContext, options: Any
) -> list[list[tuple[float, float]]]:
    """Return each anchor's candidates as (model, teacher), the positive first."""

    def both(anchor: int, view: str, row: int, vector: Tensor) -> tuple[float, float]:
        taught = [ctx.vectors(name, "frozen")["sentence"].vectors for name in ("anchor", view)]
        kind = options.similarity
        return (
            close(batch.anchors[anchor], vector, kind),
            close(taught[0][anchor], taught[1][row], kind),
        )

    found = []
    own = batch.views["negative"]["sentence"].vectors
    for a in range(len(batch.anchors)):
        listed = [both(a, "positive", a, targets.vectors[a, 0])]
        for b in range(len(batch.anchors)):
            if options.candidates == "batch" and a != b:
                listed.append(both(a, "positive", b, targets.vectors[b, 0]))
            if options.candidates == "batch" or a == b:
                listed.append(both(a, "negative", b, own[b]))
        found.append(listed)
    return found


class TaughtSuite(LossSuite):
    """A teacher that is not the model: a loss near zero has gradients of rounding errors alone.

    In made-up batches its vectors are those of the batch's views.
    """

    sets: ClassVar[Sequence[str]] = (f"branch.frozen.model={shared_encoder(family='electra')}",)

    def batch(self, sentences: int = 4, dtype: torch.dtype = torch.float32) -> Batch:
        batch = super().batch(sentences, dtype)
        targets = {
            name: replace(group, vectors=0.5 * group.vectors + 1)
            for name, group in batch.targets.items()
        }
        return replace(batch, anchors=2 * batch.anchors + 1, targets=targets)


class TestLossMse(TaughtSuite):
    part = ("loss", "mse")
    variants = ({"metric": "cosine", "sides": "anchor"}, {"dimension": 32})

    def slow(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext, options: Any
    ) -> float:
        total, count = 0.0, 0
        for view, vectors in (("anchor", batch.anchors), ("positive", targets.vectors[:, 0])):
            taught = ctx.vectors(view, "frozen")["sentence"].vectors
            for row, vector in enumerate(vectors):
                for one, other in zip(vector.tolist(), taught[row].tolist(), strict=True):
                    total, count = total + (one - other) ** 2, count + 1
        return total / count


class TestLossMarginMse(TaughtSuite):
    part = ("loss", "margin-mse")
    variants = ({"candidates": "batch", "similarity": "cosine"},)

    def slow(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext, options: Any
    ) -> float:
        total = 0.0
        for (s, t), *others in lists(batch, targets, ctx, options):
            total += sum(((s - u) - (t - v)) ** 2 for u, v in others) / len(others)
        return total / len(batch.anchors)


class TestLossKl(TaughtSuite):
    part = ("loss", "kl")
    options = {"candidates": "batch", "similarity": "cosine", "temperature": 0.3,
               "teacher_temperature": 0.5}  # fmt: skip
    sets = (*TaughtSuite.sets, "views.negative.column=negative")
    columns = ("negative",)

    def slow(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext, options: Any
    ) -> float:
        total = 0.0
        for listed in lists(batch, targets, ctx, options):
            q, p = (
                [math.exp(pair[place] / warm) for pair in listed]
                for place, warm in ((0, 0.3), (1, 0.5))
            )
            for one, other in zip(p, q, strict=True):
                share = one / sum(p)
                total += 0.3**2 * share * (math.log(share) - math.log(other / sum(q)))
        return total / len(batch.anchors)
