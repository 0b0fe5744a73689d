"""The kit over the distribution and its parts, beside loops over lists."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from cse_testkit import LossSuite, part_suites, recipe_suites, shared_encoder
from torch import Tensor

from cse_core.types import Batch, Negatives, Positives, StepContext

globals().update(part_suites("cse-rankcse"))  # a class of such a name takes its place
globals().update(recipe_suites("cse-rankcse", Path(__file__).parent / "settings"))


def cosines(left: Tensor, right: Tensor) -> list[list[float]]:
    return [[float(torch.cosine_similarity(a, b, dim=0)) for b in right] for a in left]


def shares(logits: Sequence[float]) -> list[float]:
    total = sum(math.exp(each) for each in logits)
    return [math.exp(each) / total for each in logits]


class TaughtSuite(LossSuite):
    """A teacher that is not the model, whose vectors in made-up batches are those of its views."""

    sets: ClassVar[Sequence[str]] = (f"branch.frozen.model={shared_encoder(family='electra')}",)

    def batch(self, sentences: int = 4, dtype: torch.dtype = torch.float32) -> Batch:
        batch = super().batch(sentences, dtype)
        targets = {
            name: replace(group, vectors=group.vectors.flip(-1) + 0.3)
            for name, group in batch.targets.items()
        }
        return replace(batch, targets=targets)

    def taught(self, ctx: StepContext) -> list[list[float]]:
        one, other = (ctx.vectors(view, "frozen")["sentence"].vectors
                      for view in ("anchor", "positive"))  # fmt: skip
        return cosines(one, other)


class TestLossListNet(TaughtSuite):
    part = ("loss", "list-net")
    options: ClassVar[Mapping[str, Any]] = {"temperature": 0.3, "teacher_temperatures": (0.2,)}
    variants: ClassVar[Sequence[Any]] = ({"own": False, "similarity": "dot", "temperature": 5.0},)

    def slow(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext, options: Any
    ) -> float:
        total, teacher = 0.0, self.taught(ctx)
        for a, row in enumerate(cosines(batch.anchors, targets.vectors[:, 0])):
            listed = [b for b in range(len(row)) if options.own or b != a]
            wanted = shares([teacher[a][b] / 0.2 for b in listed])
            found = shares([row[b] / 0.3 for b in listed])
            total -= sum(p * math.log(q) for p, q in zip(wanted, found, strict=True))
        return total / len(batch.anchors)


class TestListNetWithoutOwn(TestLossListNet):
    options = {"temperature": 0.3, "teacher_temperatures": (0.2,), "own": False}
    variants = ()


class TestLossListMle(TaughtSuite):
    part = ("loss", "list-mle")
    options = {"temperature": 0.3}
    variants = ({"variant": "published"},)

    def slow(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext, options: Any
    ) -> float:
        total, teacher = 0.0, self.taught(ctx)
        for a, row in enumerate(cosines(batch.anchors, targets.vectors[:, 0])):
            places = sorted(range(len(row)), key=lambda b: -teacher[a][b])
            for number, b in enumerate(places):
                left = sum(math.exp(row[c] / 0.3) for c in places[number:])
                total -= math.log(math.exp(row[b] / 0.3) / left)
        return total / len(batch.anchors)


class TestPublishedListMle(TaughtSuite):
    part = ("loss", "list-mle")
    options = {"variant": "published"}


class TestLossRankingConsistency(LossSuite):
    part = ("loss", "ranking-consistency")
    options = {"temperature": 0.3}
    variants = ({"variant": "published"},)

    def slow(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext, options: Any
    ) -> float:
        total, count = 0.0, len(batch.anchors)
        close = cosines(batch.anchors, targets.vectors[:, 0])
        for a in range(count):
            p = shares([close[a][b] / 0.3 for b in range(count)])
            q = shares([close[b][a] / 0.3 for b in range(count)])
            for one, other in zip(p, q, strict=True):
                middle = (one + other) / 2
                total += (one * math.log(one / middle) + other * math.log(other / middle)) / 2
        return total / count
