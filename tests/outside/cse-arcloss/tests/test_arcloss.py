from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from cse_arcloss.arc import with_margin
from cse_arcloss.options import ArcOptions
from cse_testkit import LossSuite, PluginSuite, RecipeSuite
from pydantic import ValidationError


class TestPlugin(PluginSuite):
    distribution = "cse-arcloss"


class TestRecipe(RecipeSuite):
    recipe = "arcloss"


class TestArc(LossSuite):
    part = ("loss", "arc")

    def slow(self, batch: Any, targets: Any, negatives: Any, ctx: Any, options: Any) -> Any:
        total, counted = 0.0, 0
        for a, anchor in enumerate(batch.anchors):
            weights = [1.0] * targets.vectors.shape[1]
            if targets.weights is not None:
                weights = targets.weights[a].tolist()
            if sum(weights) == 0:
                continue
            counted += 1
            push = 0.0
            for n, negative in enumerate(negatives.vectors):
                if not negatives.mask[a, n]:
                    cosine = float(torch.cosine_similarity(anchor, negative, dim=0))
                    push += math.exp(cosine / options.temperature + negatives.log_weights[a, n])
            for positive, weight in zip(targets.vectors[a], weights, strict=True):
                cosine = float(torch.cosine_similarity(anchor, positive, dim=0))
                angle = math.acos(max(-1.0, min(1.0, cosine))) + math.radians(options.margin)
                pull = math.exp(math.cos(angle) / options.temperature)
                total -= weight / sum(weights) * math.log(pull / (pull + push))
        return total / max(counted, 1) if options.reduction == "mean" else total


def test_the_margin_is_added_to_the_angle() -> None:
    angles = torch.tensor([0.3, 1.0, 2.0], dtype=torch.float64)
    assert torch.allclose(with_margin(angles.cos(), 0.2), (angles + 0.2).cos())


def test_only_the_cosine_has_an_angle() -> None:
    with pytest.raises(ValidationError):
        ArcOptions(similarity="dot")  # type: ignore[arg-type]
