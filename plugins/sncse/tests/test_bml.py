"""The margin loss, and soft negatives in a run."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from cse_testkit import compose, make_batch, make_context, make_part
from pydantic import ValidationError
from torch import Tensor

from cse_core.types import Batch, Positives
from cse_engine.step import negatives as core
from tests.fixtures.methods import refusal

VIEWS: dict[str, Any] = {"positive": "positive", "soft_negative": "soft_negative"}


def at(cosine: float) -> list[float]:
    """Return a unit vector whose cosine with [1, 0] is this."""
    return [cosine, (1 - cosine**2) ** 0.5]


def batch_of(gaps: list[float]) -> Batch:
    """Return anchors, their equals as positives, and soft negatives with these differences D."""
    rows = {
        "anchor": [[1.0, 0.0]] * len(gaps),
        "positive": [[2.0, 0.0]] * len(gaps),
        "soft_negative": [at(1.0 + gap) for gap in gaps],
    }
    vectors = {name: torch.tensor(values, dtype=torch.float64) for name, values in rows.items()}
    return make_batch(vectors, views=VIEWS)


def value(batch: Batch, targets: Positives | None = None, **options: Any) -> Tensor:
    loss = make_part("loss", "bml", **options)
    targets = targets or batch.targets["positive"]
    return loss(batch, targets, core.no_negatives(batch), make_context(batch)).value


def test_weights_of_positives() -> None:
    batch = batch_of([0.0, -0.5])
    for weights, wanted in (([[1.0], [0.0]], 0.1), ([[0.0], [0.0]], 0.0)):
        some = torch.tensor(weights, dtype=torch.float64)
        targets = replace(batch.targets["positive"], weights=some)
        assert float(value(batch, targets)) == pytest.approx(wanted)
    vectors = torch.tensor([[[1.0, 0.0], at(0.5), at(0.0)]], dtype=torch.float64)
    several = Positives(vectors, torch.tensor([[3.0, 1.0, 0.0]], dtype=torch.float64))
    # D is -0.5, 0 and 0.5: terms 0.2, 0.1 and, of no weight, 0.6.
    assert float(value(batch_of([-0.5]), several)) == pytest.approx((3 * 0.2 + 0.1) / 4)


def test_at_a_level_of_segments() -> None:
    batch = make_batch(views=VIEWS, sentences=3, segments=2, level="segment")
    soft = batch.views["soft_negative"]["segment"]
    order = torch.tensor([5, 1, 0, 3])  # two segments have no counterpart
    shuffled = {**batch.views, "soft_negative": {"segment": soft.take(order)}}
    found = value(replace(batch, views=shuffled), level="segment")
    total = 0.0
    for row in (0, 1, 3, 5):
        anchor, positive = batch.anchors[row], batch.targets["positive"].vectors[row, 0]
        gap = torch.cosine_similarity(anchor, soft.vectors[row], dim=0) - torch.cosine_similarity(
            anchor, positive, dim=0
        )
        total += max(0.0, float(gap) + 0.1) + max(0.0, -float(gap) - 0.3)
    assert float(found) == pytest.approx(total / 4)


def test_an_empty_band_is_refused() -> None:
    with pytest.raises(ValidationError):
        make_part("loss", "bml", alpha=0.4)
    assert "loss.bml" in refusal(compose, recipe="sncse", sets=["loss.bml.beta=0.05"])
