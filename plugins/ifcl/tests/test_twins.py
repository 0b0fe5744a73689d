"""What each option of the loss does."""

from dataclasses import replace
from typing import Any

import torch
from cse_testkit import make_batch, make_context, make_part

from cse_core.types import Batch, LossOutput, Negatives, Positives
from cse_engine.step import negatives as core

VIEWS: dict[str, Any] = {"identical": "positive", "positive": "positive"}


def batch_of(sentences: int = 4, **more: Any) -> Batch:
    return make_batch(sentences=sentences, views=VIEWS, levels=("input",), **more)


def value_of(batch: Batch, seen: Negatives | None = None, **options: Any) -> LossOutput:
    """Return the loss with these negatives, by default those that the core builds."""
    loss = make_part("loss", "twins", **options)
    if seen is None:
        seen = core.negatives_for_loss(batch, loss.options, ())
    output: LossOutput = loss(batch, batch.targets["identical"], seen, make_context(batch))
    return output


def test_a_term_of_weight_zero_is_not_computed() -> None:
    batch = replace(batch_of(), views={})
    parts = value_of(batch, margin=0.0).parts
    logged = {"cos_identical", "cos_fraternal", "twin_gap"}
    assert set(parts) == {"identical", "fraternal", *logged}
    full = value_of(batch_of()).parts
    assert all(torch.equal(parts[name], full[name]) for name in logged)


def test_a_weight_may_be_a_schedule() -> None:
    batch = batch_of()
    loss = make_part("loss", "twins", margin="linear(0,1)")
    negatives = core.negatives_for_loss(batch, loss.options, ())

    def at(step: int) -> LossOutput:
        ctx = make_context(batch, step=step, total_steps=10)
        output: LossOutput = loss(batch, batch.targets["identical"], negatives, ctx)
        return output

    assert "margin" not in at(0).parts
    half = at(5).parts
    wanted = half["identical"] + half["fraternal"] + 0.5 * half["margin"]
    assert torch.allclose(at(5).value, wanted)


def test_the_fraternal_term_is_in_batch_whatever_negatives_says() -> None:
    batch = batch_of()
    wanted = value_of(batch).parts["fraternal"]
    for choice in ("in-batch", "stored", "none"):
        parts = value_of(batch, negatives=choice).parts
        assert torch.equal(parts["fraternal"], wanted) and wanted > 0
        assert (parts["identical"] > 0) == (choice == "in-batch")


def test_equal_texts_are_masked_in_both_terms() -> None:
    parts = value_of(batch_of(same_text={1: 0})).parts
    plain = value_of(batch_of()).parts
    kept = value_of(batch_of(same_text={1: 0}), same_text="keep").parts
    for name in ("identical", "fraternal"):
        assert parts[name] < plain[name]
        assert torch.equal(kept[name], plain[name])


def test_an_absent_identical_twin_does_not_count() -> None:
    """The mean is over the anchors that have one; the fraternal term is over all."""
    batch, loss = batch_of(), make_part("loss", "twins")
    negatives = core.negatives_for_loss(batch, loss.options, ())

    def with_twins_of(*rows: int) -> Any:
        weights = torch.zeros(4, 1, dtype=torch.float64)
        weights[list(rows)] = 1
        some = Positives(batch.targets["identical"].vectors, weights)
        return loss(batch, some, negatives, make_context(batch)).parts

    for term in ("identical", "margin"):
        each = torch.stack([with_twins_of(row)[term] for row in (0, 1, 3)])
        assert torch.allclose(with_twins_of(0, 1, 3)[term], each.mean())
        assert with_twins_of()[term] == 0
    assert torch.equal(with_twins_of()["fraternal"], value_of(batch).parts["fraternal"])


def test_segments_have_the_margin_of_their_sentence() -> None:
    batch = make_batch(sentences=3, segments=2, views=VIEWS, level="segment", levels=("input",))
    innate = value_of(batch, level="segment").parts["innate_margin"]
    sentences = make_batch(sentences=3, views=VIEWS, levels=("input",), dimension=8)
    inputs = {name: batch.views[name]["input"] for name in batch.views}
    views = {name: {**view, "input": inputs[name]} for name, view in sentences.views.items()}
    wanted = value_of(replace(sentences, views=views)).parts["innate_margin"]
    assert torch.allclose(innate, wanted)


def test_both_directions_see_the_twins_from_either_side() -> None:
    """Turned, the anchors are the identical twins; the fraternal ones stay what they are."""
    batch = batch_of()
    loss = make_part("loss", "twins", margin=0.0)
    turned, anchors = core.reversed_batch(batch, "identical")
    found = loss(turned, anchors, core.no_negatives(turned), make_context(batch)).parts["fraternal"]
    other = make_batch(
        {
            "anchor": batch.views["identical"]["sentence"].vectors,
            "identical": batch.anchors,
            "positive": batch.views["positive"]["sentence"].vectors,
        },
        views=VIEWS,
    )
    assert torch.allclose(found, value_of(other, margin=0.0).parts["fraternal"])
