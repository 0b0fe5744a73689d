"""What counts in a ranking beside the loops of test_plugin: scores, keys, rows of other views."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from cse_graded.options import AngleOptions, GradedOptions
from cse_graded.ranking import ranked
from cse_testkit import compose, make_batch, make_context, make_part, tiny_corpus

from cse_core.types import Positives
from tests.fixtures.methods import refusal


def test_large_logits_are_finite() -> None:
    logits = torch.tensor([1e4, -1e4, 0.0], requires_grad=True)
    loss = ranked(logits, torch.tensor([0.0, 1.0, 2.0]), torch.ones(3, dtype=torch.bool))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert float(loss.detach()) == pytest.approx(2e4) and bool(gradient.isfinite().all())


def test_several_positives_have_the_score_of_their_text() -> None:
    batch = make_batch(sentences=2, groups={"found": 3})
    ctx, group = make_context(batch, values={"score": [1.0, 2.0]}), batch.targets["found"]
    loss = make_part("loss", "cosent", target="found")
    negatives = ctx.negatives(batch, loss.options)
    found = float(loss(batch, group, negatives, ctx).value)
    total = 1.0
    close = [
        torch.cosine_similarity(a, p) * 20
        for a, p in zip(batch.anchors, group.vectors, strict=True)
    ]
    for better in close[1]:  # anchor 0 has one positive, and the lower score
        total += math.exp(close[0][0] - better)
    assert found == pytest.approx(math.log(total))
    none = Positives(group.vectors, torch.zeros_like(torch.as_tensor(group.weights)))
    assert float(loss(batch, none, negatives, ctx).value) == 0


def test_own_negatives_are_found_by_key() -> None:
    roles: Any = {"positive": "positive", "negative": "negative"}
    batch = make_batch(sentences=3, views=roles)
    ctx = make_context(batch)
    loss = make_part("loss", "angle", column=None, own_negatives=True)
    given = (batch.targets["positive"], ctx.negatives(batch, loss.options), ctx)
    turned = batch.views["negative"]["sentence"].take(torch.tensor([2, 0, 1]))
    other = replace(batch, views={**batch.views, "negative": {"sentence": turned}})
    one, two = (float(loss(each, *given).value) for each in (batch, other))
    assert one == pytest.approx(two, abs=1e-12) and one > 0
    plain = make_part("loss", "angle")
    scored = make_context(batch, values={"score": [1.0, 1.0, 1.0]})
    assert float(plain(batch, given[0], given[1], scored).value) == 0, "no pair of a negative"


def test_defaults_are_those_of_the_public_codes() -> None:
    for options in (GradedOptions(), AngleOptions()):
        assert options.temperature == 1 / 20 and options.column == "score"
        assert not options.own_negatives


@pytest.mark.parametrize(
    ("columns", "flags", "says", "hint"),
    [
        (("positive",), [], "score", "--set data.columns.score=COLUMN"),
        ({"score": "float"}, [], "no column 'positive'", "--set data.columns.positive=COLUMN"),
        (
            {"score": "float", "positive": "text"},
            ["loss.cosent.own_negatives=true"],
            "needs the view 'negative'",
            "--negatives +hard-negatives",
        ),
        (("positive",), ["loss.cosent.column=none"], "column = none", "own_negatives = true"),
        ({"score": "float", "positive": "text"}, ["loss.cosent.directions=both"], "both", "one"),
    ],
)
def test_what_is_missing_is_one_line(columns: Any, flags: list[str], says: str, hint: str) -> None:
    corpus = tiny_corpus(columns=columns)
    line = refusal(compose, recipe="cosent", sets=flags, corpus=corpus)
    assert says in line and hint in line
