"""The kit over the distribution, its parts and recipes, beside sums over all pairs of pairs."""

import math
from pathlib import Path
from typing import Any, ClassVar

import torch
from cse_testkit import LossSuite, part_suites, recipe_suites
from torch import Tensor

from cse_core.types import Batch, Negatives, Positives, StepContext

globals().update(part_suites("cse-graded"))  # a class of such a name takes its place
globals().update(recipe_suites("cse-graded", Path(__file__).parent / "settings"))


def cosine(one: Tensor, other: Tensor) -> float:
    return float(torch.cosine_similarity(one, other, dim=0))


def angle(one: Tensor, other: Tensor) -> float:
    """Return the similarity by Python's complex numbers."""
    a, b = (
        [complex(x, y) for x, y in zip(v[: len(v) // 2], v[len(v) // 2 :], strict=True)]
        for v in (one.tolist(), other.tolist())
    )
    total = sum(x * y.conjugate() for x, y in zip(a, b, strict=True))
    lengths = [math.sqrt(sum(abs(x) ** 2 for x in each)) for each in (a, b)]
    return abs(total.real + total.imag) / (lengths[0] * lengths[1])


def summed(pairs: list[tuple[float, float]], temperature: float) -> float:
    """Return the loss of pairs (similarity, score) by a sum over all pairs of them."""
    total = 1.0
    for high, better in pairs:
        for low, worse in pairs:
            if better > worse:
                total += math.exp((low - high) / temperature)
    return math.log(total)


class TestLossCosent(LossSuite):
    part = ("loss", "cosent")
    options = {"temperature": 0.3}
    variants = ({"similarity": "dot", "temperature": 5.0},)

    def slow(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext, options: Any
    ) -> float:
        scores = ctx.values("score").tolist()
        pairs = [
            (cosine(anchor, targets.vectors[a, 0]), scores[int(batch.owner[a])])
            for a, anchor in enumerate(batch.anchors)
        ]
        return summed(pairs, options.temperature)


class TestAngleOfTriplets(LossSuite):
    part = ("loss", "angle")
    options = {"temperature": 0.3, "own_negatives": True}

    def slow(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext, options: Any
    ) -> float:
        scores, pairs = ctx.values("score").tolist(), []
        own = batch.views["negative"]["sentence"]
        for a, anchor in enumerate(batch.anchors):
            score = scores[int(batch.owner[a])]
            pairs.append((angle(anchor, targets.vectors[a, 0]), score))
            for n in range(len(own.vectors)):
                if own.owner[n] == batch.owner[a]:
                    pairs.append((angle(anchor, own.vectors[n]), 1 - score))
        return summed(pairs, options.temperature)


class TestTripletsWithoutScores(LossSuite):
    part = ("loss", "cosent")
    options = {"column": None, "own_negatives": True}


def apart(one: Tensor, other: Tensor, kind: str) -> float:
    if kind == "cosine":
        return 1 - float(torch.cosine_similarity(one, other, dim=0))
    return float((one - other).norm())


class TestLossTriplet(LossSuite):
    part = ("loss", "triplet")
    options: ClassVar[Any] = {"triplets": "hardest", "margin": 2.0}
    variants = ({"distance": "cosine"}, {"triplets": "own"}, {"column": "label"})
    columns = {"label": "label"}

    def slow(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext, options: Any
    ) -> float:
        total = 0.0
        for a, anchor in enumerate(batch.anchors):
            far = [
                (apart(anchor, vector, options.distance), math.exp(negatives.log_weights[a, n]))
                for n, vector in enumerate(negatives.vectors)
                if not negatives.mask[a, n] and negatives.log_weights[a, n] > -math.inf
            ]
            near = apart(anchor, targets.vectors[a, 0], options.distance)
            if far:
                total += min(far)[1] * max(0.0, near - min(far)[0] + options.margin)
        return total / len(batch.anchors)


class TestLossSupcon(LossSuite):
    part = ("loss", "supcon")
    variants = ({"views": "anchor"}, {"contrast": "one"})
