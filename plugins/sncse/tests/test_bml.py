"""The margin loss, and soft negatives in a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from cse_testkit import compose, make_batch, make_context, make_part, run_steps
from pydantic import ValidationError
from torch import Tensor

from cse_core.engine import negatives as core
from cse_core.errors import CseError
from cse_core.options import LossOptions
from cse_core.types import Batch, Positives

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
    return loss(batch, targets, core.nothing(batch), make_context(batch)).value


@pytest.mark.parametrize(
    ("gap", "wanted"),
    [(0.0, 0.1), (-0.05, 0.05), (-0.1, 0.0), (-0.2, 0.0), (-0.3, 0.0), (-0.5, 0.2), (-1.0, 0.7)],
)
def test_the_band(gap: float, wanted: float) -> None:
    assert float(value(batch_of([gap]))) == pytest.approx(wanted, abs=1e-9)


def test_the_mean_and_the_sum_over_anchors() -> None:
    batch = batch_of([0.0, -0.2, -0.5])
    assert float(value(batch)) == pytest.approx(0.1)
    assert float(value(batch, reduction="sum")) == pytest.approx(0.3)


def test_one_row() -> None:
    assert float(value(batch_of([-0.5]))) == pytest.approx(0.2)


def test_an_anchor_without_a_positive_is_not_counted() -> None:
    batch = batch_of([0.0, -0.5])
    targets = replace(
        batch.targets["positive"], weights=torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    )
    assert float(value(batch, targets)) == pytest.approx(0.1)
    nothing = replace(targets, weights=torch.zeros(2, 1, dtype=torch.float64))
    assert float(value(batch, nothing)) == 0.0


def test_several_positives_are_weighted() -> None:
    batch = batch_of([-0.5])
    vectors = torch.tensor([[[1.0, 0.0], at(0.5), at(0.0)]], dtype=torch.float64)
    weights = torch.tensor([[3.0, 1.0, 0.0]], dtype=torch.float64)
    # D is -0.5, 0 and 0.5: terms 0.2, 0.1 and, of no weight, 0.6.
    found = value(batch, Positives(vectors, weights))
    assert float(found) == pytest.approx((3 * 0.2 + 0.1) / 4)


def test_rows_are_joined_by_key() -> None:
    """In another order, and with an anchor that has no soft negative."""
    batch = batch_of([0.0, -0.2, -0.5])
    view = batch.views["soft_negative"]["sentence"]

    def with_rows(*index: int) -> Batch:
        taken = {"sentence": view.take(torch.tensor(index, dtype=torch.long))}
        return replace(batch, views={**batch.views, "soft_negative": taken})

    assert float(value(with_rows(2, 0, 1))) == pytest.approx(0.1)
    assert float(value(with_rows(2, 1))) == pytest.approx(0.1)
    assert float(value(with_rows(2))) == pytest.approx(0.2)
    assert float(value(with_rows())) == 0.0


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
    with pytest.raises(CseError) as caught:
        compose(recipe="sncse", sets=["loss.bml.beta=0.05"])
    assert "loss.bml" in str(caught.value) and "\n" not in str(caught.value)


# -- in a run ---------------------------------------------------------------------------------


@pytest.mark.parametrize("sides", ["target", "anchor", "both"])
def test_soft_negatives_are_never_negatives(sides: Any) -> None:
    batch = make_batch(views=VIEWS)
    negatives = core.of_loss(batch, LossOptions(in_batch=sides), ())
    assert "soft_negative" not in dict(negatives.blocks)
    assert len(negatives) == (8 if sides == "both" else 4)
    soft = batch.views["soft_negative"]["sentence"].vectors
    assert not (negatives.vectors.unsqueeze(1) == soft.unsqueeze(0)).all(dim=2).any()
    assert "soft_negative" not in batch.targets


def test_infonce_of_a_run_is_the_same_with_and_without_them() -> None:
    sets = ["model.dropout=0", "model.max_length=64"]
    with_soft = run_steps(recipe="sncse", sets=sets, steps=1)
    without = run_steps(
        recipe="sncse", sets=sets, steps=1, kinds={"aug": ["~negation"], "loss": ["~bml"]}
    )
    assert [view.name for view in without.composition.views] == ["anchor", "positive"]
    seen = with_soft.scalars[0]["infonce.negatives"]
    assert seen == without.scalars[0]["infonce.negatives"] > 0
    assert with_soft.scalars[0]["infonce.loss"] == pytest.approx(
        without.scalars[0]["infonce.loss"], rel=1e-5
    )
    assert with_soft.scalars[0]["bml.loss"] > 0


def test_the_total_is_infonce_and_the_weighted_margin() -> None:
    sets = ["params.margin_weight=0.5", "model.max_length=64"]
    run = run_steps(recipe="sncse", sets=sets, steps=1)
    parts = run.scalars[0]
    assert run.losses[0] == pytest.approx(parts["infonce.loss"] + 0.5 * parts["bml.loss"], rel=1e-5)


def test_a_run_without_soft_negatives_is_told_who_makes_them() -> None:
    with pytest.raises(CseError) as caught:
        compose(kinds={"loss": ["+bml"]})
    assert "soft_negative" in str(caught.value) and "--aug +negation" in str(caught.value)


def test_the_margin_moves_the_similarity_into_its_band() -> None:
    """Alone, without contrast, sixty steps bring D from about 0 into the band."""
    sets = [
        "model.max_length=64", "train.batch_size=12", "train.lr=0.003", "train.schedule=constant",
        "loss.bml.weight=1",
    ]  # fmt: skip
    kinds: dict[Any, list[str]] = {"loss": ["~infonce"]}
    run = run_steps(recipe="sncse", kinds=kinds, sets=sets, steps=60)
    late = [scalars["bml.difference"] for scalars in run.scalars[-5:]]
    assert run.scalars[0]["bml.difference"] > -0.1
    assert all(-0.4 < each < -0.05 for each in late)
    assert sum(run.losses[-5:]) < 0.5 * sum(run.losses[:5])
