"""Numbers computed from the paper's equations; parts and core together give the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from cse_testkit import Rig, compose, make_context, make_part, tiny_corpus
from torch import Tensor

from cse_core.engine.objective import Objective, Objectives
from cse_core.types import CorpusKeys, Embeddings, TokenBatch, offsets_of, positions_of
from tests.shared import shared_path

ALPHAS = (0.0, 0.01, 0.05, 0.15, 1.0)
READINGS = {"negatives_second_view": "target", "negatives_first_view": "anchor"}


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    text = shared_path("golden/hicl_local_global.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def tensor(rows: list[Any]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def content(lengths: list[int]) -> TokenBatch:
    """Return texts of so many content tokens."""
    offsets = offsets_of(torch.tensor(lengths))
    count = int(offsets[-1])
    return TokenBatch(
        ids=torch.arange(count),
        positions=positions_of(offsets),
        source=positions_of(offsets),
        word=positions_of(offsets),
        special=torch.zeros(count, dtype=torch.bool),
        offsets=offsets,
        owner=torch.arange(len(lengths)),
        slot=torch.zeros(len(lengths), dtype=torch.long),
    )


def segments(golden: dict[str, Any], view: int) -> Embeddings:
    """Return the given vectors of segments, with the keys that slicing gives them."""
    sliced = make_part("pool", "segments", length=golden["slice_length"]).slices(
        content(golden["sequence_token_lengths"])
    )
    vectors = tensor(golden[f"h_view{view}"])
    return Embeddings(vectors, sliced.owner, sliced.slot, sliced.lengths, 3)


def objective(
    golden: dict[str, Any], *sets: str, kinds: Any = None, recipe: str = "hicl"
) -> Objective:
    """Return the core's objective of a recipe for the given vectors."""
    corpus = tiny_corpus()
    rig = Rig(compose(recipe=recipe, kinds=kinds, sets=sets, corpus=corpus), corpus)
    slicer = rig.assembly.online.slicer
    assert slicer is not None
    vectors = {}
    for number, view in enumerate(("anchor", "positive"), start=1):
        rows = segments(golden, number)
        vectors[view] = {"segment": rows, "sentence": slicer.join(rows)}
    keys = CorpusKeys(torch.full((3,), -1), torch.arange(3))
    roles: Any = {"anchor": "anchor", "positive": "positive"}
    objectives = Objectives(rig.assembly)
    return objectives(vectors, roles, torch.arange(3), keys, make_context())


def close(golden: dict[str, Any], found: Tensor | None, wanted: float) -> bool:
    assert found is not None and found.dtype == torch.float64
    return abs(float(found) - wanted) <= golden["suggested_atol"]


def test_slices(golden: dict[str, Any]) -> None:
    sliced = segments(golden, 1)
    assert sliced.owner.tolist() == golden["segment_owner"]
    assert sliced.length.tolist() == sum(golden["segment_lengths"], [])
    counts = torch.bincount(sliced.owner)
    assert counts.tolist() == golden["n_segments"]


def test_slicing_edge_cases(golden: dict[str, Any]) -> None:
    cases = golden["slicing_edge_cases_len_to_[n_segments,lengths]"]
    pooler = make_part("pool", "segments", length=golden["slice_length"])
    for length, (count, lengths) in cases.items():
        sliced = pooler.slices(content([int(length)]))
        assert (sliced.rows, sliced.lengths.tolist()) == (count, lengths)
    together = pooler.slices(content([int(length) for length in cases]))
    assert together.lengths.tolist() == sum((lengths for _, lengths in cases.values()), [])


@pytest.mark.parametrize("view", [1, 2])
def test_sentences_are_weighted_by_length(golden: dict[str, Any], view: int) -> None:
    joined = make_part("pool", "segments").join(segments(golden, view))
    wanted = tensor(golden[f"H_weighted_view{view}"])
    assert torch.allclose(joined.vectors, wanted, rtol=0, atol=golden["suggested_atol"])
    assert joined.length.tolist() == golden["sequence_token_lengths"]


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("reading", READINGS)
def test_local_and_global_loss(golden: dict[str, Any], reading: str, alpha: float) -> None:
    """Both readings of the negatives: of the second view (code bases), of the first (Eqs. 1-2)."""
    side = READINGS[reading]
    sets = [f"loss.{name}.in_batch={side}" for name in ("local", "global")]
    found = objective(golden, *sets, f"params.alpha={alpha}")
    printed = golden["global_mean_second_view"]
    if side == "anchor":
        printed = golden["global_mean_first_view_negatives"]
    assert close(golden, found.parts["local.loss"], golden["local_mean_over_segments"][reading])
    assert close(golden, found.parts["global.loss"], printed)
    assert close(
        golden, found.value, golden["total_by_variant_and_alpha"][f"{reading}|alpha={alpha}"]
    )


@pytest.mark.parametrize("reading", READINGS)
def test_local_losses_summed(golden: dict[str, Any], reading: str) -> None:
    """Summed over the segments instead of averaged."""
    wanted = golden["local_per_segment"][reading]
    found = objective(
        golden, f"loss.local.in_batch={READINGS[reading]}", "loss.local.reduction=sum"
    )
    assert close(golden, found.parts["local.loss"], sum(wanted))


def test_averaging(golden: dict[str, Any]) -> None:
    found = objective(golden, kinds={"negatives": ["+averaging"]})
    printed = golden["local_mean_over_segments"]["averaging_variant_second_view"]
    assert close(golden, found.parts["local.loss"], printed)
    assert close(golden, found.parts["global.loss"], golden["global_mean_second_view"])


def test_segments_of_the_same_text_as_negatives(golden: dict[str, Any]) -> None:
    found = objective(golden, "loss.local.same_sentence=keep")
    printed = golden["local_mean_over_segments"]["same_sequence_as_negative_second_view"]
    assert close(golden, found.parts["local.loss"], printed)
    assert close(golden, found.parts["global.loss"], golden["global_mean_second_view"])


def test_unweighted_join(golden: dict[str, Any]) -> None:
    found = objective(golden, "pool.segments.aggregate=mean")
    assert close(golden, found.parts["global.loss"], golden["global_mean_unweighted_pooling"])


def test_entailment(golden: dict[str, Any]) -> None:
    found = objective(golden, recipe="hicl-v2")
    assert close(golden, found.parts["entailment.loss"], golden["hiclv2_entailment_mean"])
    local = golden["local_mean_over_segments"]["negatives_second_view"]
    whole = golden["global_mean_second_view"]
    alpha, beta = 0.15, 3e-4
    printed = alpha * local + (1 - alpha - beta) * whole + beta * golden["hiclv2_entailment_mean"]
    assert close(golden, found.value, printed)
