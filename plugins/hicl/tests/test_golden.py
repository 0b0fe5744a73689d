"""Numbers computed from the paper's equations; parts and core together give the same."""

from typing import Any

import pytest
import torch
from cse_testkit import Rig, compose, make_context, make_part, tiny_corpus
from torch import Tensor

from cse_core.types import CorpusKeys, Embeddings, TokenBatch
from cse_engine.step.objective import Objective, Objectives
from tests.fixtures.token_rows import token_rows
from tests.shared import golden, tensor


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    found: dict[str, Any] = golden("hicl_local_global")
    return found


def content(lengths: list[int]) -> TokenBatch:
    """Return texts of so many content tokens."""
    return token_rows(*lengths, ends=False)


def segments(numbers: dict[str, Any], view: int) -> Embeddings:
    """Return the given vectors of segments, with the keys that slicing gives them."""
    sliced = make_part("pool", "segments", length=numbers["slice_length"]).slices(
        content(numbers["sequence_token_lengths"])
    )
    vectors = tensor(numbers[f"h_view{view}"])
    return Embeddings(vectors, sliced.owner, sliced.slot, sliced.lengths, 3)


def objective(
    numbers: dict[str, Any], *sets: str, kinds: Any = None, recipe: str = "hicl"
) -> Objective:
    """Return the core's objective of a recipe for the given vectors."""
    corpus = tiny_corpus()
    rig = Rig(compose(recipe=recipe, kinds=kinds, sets=sets, corpus=corpus))
    slicer = rig.session._loop.assembly.online.slicer
    assert slicer is not None
    vectors = {}
    for number, view in enumerate(("anchor", "positive"), start=1):
        rows = segments(numbers, number)
        vectors[view] = {"segment": rows, "sentence": slicer.join(rows)}
    keys = CorpusKeys(torch.full((3,), -1), torch.arange(3))
    roles: Any = {"anchor": "anchor", "positive": "positive"}
    objectives = Objectives(rig.session._loop.assembly)
    return objectives(vectors, roles, torch.arange(3), keys, make_context())


def close(numbers: dict[str, Any], found: Tensor | None, wanted: float) -> bool:
    assert found is not None and found.dtype == torch.float64
    return abs(float(found) - wanted) <= numbers["suggested_atol"]


def test_local_and_global_loss(numbers: dict[str, Any]) -> None:
    """Both readings of the negatives: of the second view (code bases), of the first (Eqs. 1-2)."""
    for reading, side, whole in (
        ("negatives_second_view", "target", "global_mean_second_view"),
        ("negatives_first_view", "anchor", "global_mean_first_view_negatives"),
    ):
        sets = [f"loss.{name}.in_batch={side}" for name in ("local", "global")]
        for alpha in (0.0, 0.01, 0.05, 0.15, 1.0):
            found = objective(numbers, *sets, f"params.alpha={alpha}")
            local = numbers["local_mean_over_segments"][reading]
            total = numbers["total_by_variant_and_alpha"][f"{reading}|alpha={alpha}"]
            assert close(numbers, found.parts["local.loss"], local)
            assert close(numbers, found.parts["global.loss"], numbers[whole])
            assert close(numbers, found.value, total)
        found = objective(numbers, *sets, "loss.local.reduction=sum")
        assert close(numbers, found.parts["local.loss"], sum(numbers["local_per_segment"][reading]))


def test_averaging(numbers: dict[str, Any]) -> None:
    found = objective(numbers, kinds={"negatives": ["+averaging"]})
    printed = numbers["local_mean_over_segments"]["averaging_variant_second_view"]
    assert close(numbers, found.parts["local.loss"], printed)
    assert close(numbers, found.parts["global.loss"], numbers["global_mean_second_view"])


def test_segments_of_the_same_text_as_negatives(numbers: dict[str, Any]) -> None:
    found = objective(numbers, "loss.local.same_sentence=keep")
    printed = numbers["local_mean_over_segments"]["same_sequence_as_negative_second_view"]
    assert close(numbers, found.parts["local.loss"], printed)
    assert close(numbers, found.parts["global.loss"], numbers["global_mean_second_view"])


def test_unweighted_join(numbers: dict[str, Any]) -> None:
    found = objective(numbers, "pool.segments.aggregate=mean")
    assert close(numbers, found.parts["global.loss"], numbers["global_mean_unweighted_pooling"])


def test_entailment(numbers: dict[str, Any]) -> None:
    found = objective(numbers, recipe="hicl-v2")
    assert close(numbers, found.parts["entailment.loss"], numbers["hiclv2_entailment_mean"])
    local = numbers["local_mean_over_segments"]["negatives_second_view"]
    whole = numbers["global_mean_second_view"]
    alpha, beta = 0.15, 3e-4
    printed = alpha * local + (1 - alpha - beta) * whole + beta * numbers["hiclv2_entailment_mean"]
    assert close(numbers, found.value, printed)
