"""The kit over the distribution and its parts, beside loops over lists."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from cse_testkit import (
    LossSuite,
    StoreSuite,
    compose,
    make_batch,
    make_context,
    make_part,
    part_suites,
    recipe_suites,
    shared_encoder,
    tiny_corpus,
)

from cse_core.types import Batch, Negatives, Positives, StepContext

globals().update(part_suites("cse-lists"))  # a class of such a name takes its place
globals().update(recipe_suites("cse-lists", Path(__file__).parent / "settings"))

TEACHER = (f"branch.frozen.model={shared_encoder(family='electra')}",)


class TestNegativesGaussianDecay(StoreSuite):
    part = ("negatives", "gaussian-decay")
    sets: ClassVar[Sequence[str]] = TEACHER


class TestLossRankedSentences(LossSuite):
    """A text and its only sentence: two lists of two, each a softmax over what is left."""

    part = ("loss", "ranked-sentences")
    options = {"temperature": 0.3, "omega": 0.7}
    sets: ClassVar[Sequence[str]] = TEACHER

    def slow(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext, options: Any
    ) -> float:
        total, eps = 0.0, 1e-7
        taught = [
            ctx.vectors(view, "frozen")["sentence"].vectors for view in ("anchor", "positive")
        ]
        for a, anchor in enumerate(batch.anchors):
            pair, teacher = [anchor, targets.vectors[a, 0]], [each[a] for each in taught]
            close = [[cosine(x, y) / 0.3 for y in pair] for x in pair]
            wanted = [[cosine(x, y) / 0.05 for y in teacher] for x in teacher]
            for i in range(2):  # the diagonal is largest, so the teacher has the list's order
                first = max(range(2), key=lambda j: wanted[i][j])
                top = max(close[i])
                both = sum(math.exp(x - top) for x in close[i])
                total += math.log(both + eps) - (close[i][first] - top)
                other = close[i][1 - first] - top
                total += math.log(math.exp(other) + eps) - other
        return total / 2 / len(batch.anchors)


def cosine(one: torch.Tensor, other: torch.Tensor) -> float:
    return float(torch.cosine_similarity(one, other, dim=0))


def test_what_decays() -> None:
    """Of a text's own negatives those that are not above the frozen model's logit; no others."""
    roles: Any = {"positive": "positive", "negative": "negative"}
    batch = make_batch(sentences=3, views=roles)
    vectors = batch.views["negative"]["sentence"].vectors
    shifted = make_batch({"anchor": batch.anchors, "positive": vectors, "negative": vectors + 0.1},
                         views=roles)  # fmt: skip
    log: dict[str, Any] = {}
    ctx = make_context(batch, vectors=lambda view, branch: shifted.views[view], log=log)
    loss, store = make_part("loss", "infonce"), make_part("negatives", "gaussian-decay", width=2.0)
    given = ctx.negatives(batch, loss.options)
    found = store.weigh(given, batch, ctx)
    (block,) = (place for name, place in given.spans() if name == "negative")
    added = (found.log_weights - given.log_weights)[:, block]
    for a, anchor in enumerate(batch.anchors):
        for n, negative in enumerate(vectors):
            own, frozen = cosine(anchor, negative) * 20, cosine(anchor, negative + 0.1) * 20
            wanted = -own * math.exp(-((own - frozen) ** 2) / 8) if own <= frozen else 0.0
            assert float(added[a, n]) == pytest.approx(wanted if a == n else 0.0, abs=1e-9)
    assert 0 < float(log["gaussian-decay.decayed"]) < 1
    assert not bool((found.log_weights - given.log_weights)[:, : block.start].any())
    turned = replace(batch, view="positive")
    assert store.weigh(given, turned, ctx) is given, "the second direction has no hard negatives"


def test_recipes_read_columns_of_lists() -> None:
    corpus = tiny_corpus(columns=("positive", "negative"))
    for recipe, wanted in (
        ("syncse", {"positive": "draw", "negative": "draw"}),
        ("gcse", {"positive": "draw", "negative": "draw"}),
        ("ranked-sentences", {"positive": "all"}),
    ):
        run = compose(recipe=recipe, corpus=corpus)
        lists = {view.name: view.lists for view in run.views if view.lists != "rows"}
        assert {name: lists.get(name) for name in wanted} == wanted
    (line,) = (line for line in compose(recipe="gcse", corpus=corpus).warnings if "itself" in line)
    assert "--branch.frozen.model MODEL" in line
    run = compose(recipe="gcse", sets=["loss.infonce.temperature=0.1"], corpus=corpus)
    assert any("logits of temperature 0.05, and loss.infonce has 0.1" in s for s in run.warnings)
