"""Supervised contrastive learning and triplets, beside the authors' numbers and loops."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_graded.options import SupConOptions, TripletOptions
from cse_testkit import compose, make_batch, make_context, make_part, tiny_corpus
from torch import Tensor

from cse_core.types import Batch
from tests.fixtures.methods import refusal
from tests.shared import compare, tensor


def cases(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(Path(__file__).with_name(name).read_text())["cases"]
    return found


LABELS = [0, 1, 0, 2, 1]


def value(loss: Any, batch: Batch, labels: list[int], target: str = "positive") -> Tensor:
    ctx = make_context(batch, values={"label": labels})
    given = batch.targets[target], ctx.negatives(batch, loss.options), ctx
    found: Tensor = loss(batch, *given).value
    return found


@pytest.mark.parametrize("case", cases("supcon.json"), ids=lambda case: case["name"])
def test_supcon_of_the_authors(case: dict[str, Any]) -> None:
    """Two views of which all or the first are compared, and one view, where a text is alone."""
    names = [name for name in ("anchor", "positive") if name in case]
    leaves = {name: tensor(case[name]).requires_grad_(True) for name in names}
    batch = make_batch({"positive": tensor(case["anchor"]), **leaves})
    views = "both" if len(names) == 2 else "anchor"
    options = {"temperature": case["temperature"], "contrast": case["contrast"], "views": views}
    loss = make_part("loss", "supcon", **options)
    compare(value(loss, batch, case["labels"]), leaves, case, 1e-9)


@pytest.mark.parametrize("case", cases("triplets.json"), ids=lambda case: case["name"])
def test_triplets_of_sentence_transformers(case: dict[str, Any]) -> None:
    """Its Euclidean triplets add 1e-6 to differences, which ours do not."""
    names = [name for name in ("anchor", "positive", "negative") if name in case]
    leaves = {name: tensor(case[name]).requires_grad_(True) for name in names}
    hard = "labels" in case
    vectors = {"positive": tensor(case["anchor"]), **leaves}
    roles: Any = {name: name for name in vectors if name != "anchor"}
    batch = make_batch(vectors, views=roles)
    options: Any = {"distance": case["distance"], "margin": case["margin"]}
    options |= {"column": "label", "views": "anchor"} if hard else {}
    found = value(make_part("loss", "triplet", **options), batch, case.get("labels", LABELS))
    compare(found, leaves, case, 1e-9 if hard or case["distance"] == "cosine" else 2e-6)


def test_a_positive_that_is_not_there_is_of_no_class() -> None:
    batch = make_batch(sentences=5, groups={"found": 3})
    group = batch.targets["found"]
    loss = make_part("loss", "supcon", target="found", temperature=0.5)
    total, count = 0.0, 0
    texts = [(a, LABELS[n]) for n, a in enumerate(batch.anchors)]
    weights = torch.as_tensor(group.weights)
    texts += [(group.vectors[a, p], LABELS[a]) for a in range(5) for p in range(3) if weights[a, p]]
    for i, (one, label) in enumerate(texts):
        logits = [float(torch.cosine_similarity(one, x, dim=0)) / 0.5 for x, _ in texts]
        away = math.log(sum(math.exp(x) for j, x in enumerate(logits) if j != i))
        same = [logits[j] for j, (_, other) in enumerate(texts) if other == label and j != i]
        total += sum(away - x for x in same) / max(1, len(same))
        count += 1
    assert float(value(loss, batch, LABELS, "found")) == pytest.approx(total / count)


def apart(one: Tensor, other: Tensor, kind: str) -> float:
    if kind == "cosine":
        return 1 - float(torch.cosine_similarity(one, other, dim=0))
    return float((one - other).norm())


@pytest.mark.parametrize("kind", ["euclidean", "cosine"])
def test_triplets_of_own_negatives(kind: Any) -> None:
    """Their mean; a negative of another text counts for none."""
    roles: Any = {"positive": "positive", "negative": "negative"}
    batch = make_batch(sentences=3, views=roles)
    rows = batch.views["negative"]["sentence"]
    two = replace(rows, owner=torch.tensor([0, 0, 2]), slot=torch.tensor([0, 1024, 0]))
    batch = replace(batch, views={**batch.views, "negative": {"sentence": two}})
    loss = make_part("loss", "triplet", distance=kind, margin=1.0)
    total = 0.0
    for a, own in ((0, (0, 1)), (2, (2,))):
        near = apart(batch.anchors[a], batch.targets["positive"].vectors[a, 0], kind)
        terms = [max(0.0, near - apart(batch.anchors[a], rows.vectors[n], kind) + 1) for n in own]
        total += sum(terms) / len(own)
    assert float(value(loss, batch, LABELS)) == pytest.approx(total / 3)


@pytest.mark.parametrize("kind", ["euclidean", "cosine"])
def test_batch_hard_triplets(kind: Any) -> None:
    """The farthest of a text's class and the nearest of another; texts alone are not counted."""
    batch = make_batch(sentences=5)
    loss = make_part("loss", "triplet", column="label", views="anchor", distance=kind, margin=3.0)
    terms = []
    for i, one in enumerate(batch.anchors):
        gaps = [(apart(one, x, kind), LABELS[j]) for j, x in enumerate(batch.anchors) if j != i]
        same = [gap for gap, label in gaps if label == LABELS[i]]
        if same:
            nearest = min(gap for gap, label in gaps if label != LABELS[i])
            terms.append(max(0.0, max(same) - nearest + 3.0))
    assert float(value(loss, batch, LABELS)) == pytest.approx(sum(terms) / len(terms))
    assert float(value(loss, batch, [0] * 5)) == 0


def test_equal_vectors_have_finite_gradients() -> None:
    same = torch.ones(3, 4, dtype=torch.float64, requires_grad=True)
    batch = make_batch({"anchor": same, "positive": same})
    loss = make_part("loss", "triplet", triplets="hardest")
    (gradient,) = torch.autograd.grad(value(loss, batch, LABELS), same)
    assert bool(gradient.isfinite().all())


def test_defaults_are_those_of_the_public_codes() -> None:
    assert (SupConOptions().temperature, SupConOptions().contrast) == (0.07, "all")
    assert (TripletOptions().distance, TripletOptions().margin) == ("euclidean", 5.0)


def test_what_is_missing_is_one_line() -> None:
    plain = tiny_corpus(columns=("positive",))
    line = refusal(compose, kinds={"loss": ["supcon"]}, corpus=plain)
    assert "needs the column 'label'" in line and "--set data.columns.label=COLUMN" in line
    assert "needs the view 'negative'" in refusal(
        compose, kinds={"loss": ["triplet"]}, corpus=plain
    )
