"""Lists of texts with scores beside them: one list, or a list for each positive."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from cse_testkit import compose, make_batch, make_context, make_part, tiny_corpus
from torch import Tensor

from cse_core.records import PerText
from cse_core.types import SLOTS_PER_TEXT, Batch, Embeddings, Positives
from tests.fixtures.methods import refusal

SIZES = [(3, 2), (1, 0), (0, 1), (2, 3)]
"""Positives and negatives of each text."""
PAIR = ("p", "n")


def ragged() -> tuple[Batch, dict[str, list[list[float]]]]:
    """Return a batch of lists, and scores of positives and negatives, zero where there are none."""
    roles: Any = {"positive": "positive", "negative": "negative"}
    batch = make_batch(sentences=4, views=roles)
    draws = torch.Generator().manual_seed(3)
    views, scores = dict(batch.views), {}
    for place, (name, column) in enumerate((("positive", "p"), ("negative", "n"))):
        keys = [(row, n) for row, size in enumerate(SIZES) for n in range(size[place])]
        owner, text = (torch.tensor(each) for each in zip(*keys, strict=True))
        vectors = torch.randn(len(keys), 8, dtype=torch.float64, generator=draws)
        rows = Embeddings(vectors, owner, text * SLOTS_PER_TEXT, torch.ones_like(owner))
        views[name] = {"sentence": rows}
        most = max(size[place] for size in SIZES)
        drawn = torch.rand(4, most, dtype=torch.float64, generator=draws).tolist()
        scores[column] = [[*row[: size[place]], *[0.0] * (most - size[place])]
                          for row, size in zip(drawn, SIZES, strict=True)]  # fmt: skip
    positives = torch.zeros(4, 3, 8, dtype=torch.float64)
    rows = views["positive"]["sentence"]
    positives[rows.owner, rows.text] = rows.vectors
    weights = torch.tensor([[float(n < size[0]) for n in range(3)] for size in SIZES])
    group = Positives(positives, weights.double())
    return replace(batch, views=views, targets={"positive": group}), scores


def value(name: str, batch: Batch, numbers_of: Any, **options: Any) -> float:
    part = make_part("loss", name, views=("negative",), **options)
    numbers = {k: torch.tensor(v, dtype=torch.float64) for k, v in numbers_of.items()}
    ctx = make_context(batch).replace(values=numbers.__getitem__)
    given = batch.targets["positive"], ctx.negatives(batch, part.options), ctx
    return float(part(batch, *given).value)


def pairs(batch: Batch, scores: Any, row: int) -> list[list[tuple[float, float]]]:
    """Return (model, score) of a text's positives, and of its negatives."""
    found = []
    for view, column in (("positive", "p"), ("negative", "n")):
        rows = batch.views[view]["sentence"]
        found.append([
            (float(batch.anchors[row] @ vector), scores[column][row][text])
            for vector, owner, text in zip(
                rows.vectors, rows.owner.tolist(), rows.text.tolist(), strict=True
            )
            if owner == row
        ])  # fmt: skip
    return found


def kl(listed: list[tuple[float, float]]) -> float:
    q, p = ([math.exp(pair[place]) for pair in listed] for place in (0, 1))
    return sum(t / sum(p) * math.log(t / sum(p) / (s / sum(q))) for s, t in zip(q, p, strict=True))


def test_one_list_of_positives_and_negatives() -> None:
    """Texts without a positive do not count; a list of one has loss zero."""
    batch, scores = ragged()
    wanted = {"kl": 0.0, "margin-mse": 0.0}
    for row in (0, 1, 3):
        listed = sum(pairs(batch, scores, row), [])
        wanted["kl"] += kl(listed) / 3
        apart = [
            ((s - u) - (t - v)) ** 2 for n, (s, t) in enumerate(listed) for u, v in listed[n + 1 :]
        ]
        wanted["margin-mse"] += sum(apart) / max(1, len(apart)) / 3
    for name, expected in wanted.items():
        found = value(name, batch, scores, candidates="list", scores=PAIR)
        assert found == pytest.approx(expected, abs=1e-12), name
    total = value("kl", batch, scores, candidates="list", scores=PAIR, reduction="sum")
    assert total == pytest.approx(3 * wanted["kl"], abs=1e-12)


def test_a_list_of_each_positive() -> None:
    batch, scores = ragged()
    wanted = {"kl": 0.0, "margin-mse": 0.0}
    for row in (0, 1, 3):
        positives, negatives = pairs(batch, scores, row)
        for s, t in positives:
            share = 1 / len(positives) / 3
            wanted["kl"] += share * kl([(s, t), *negatives])
            apart = [((s - u) - (t - v)) ** 2 for u, v in negatives]
            wanted["margin-mse"] += share * sum(apart) / max(1, len(apart))
    for name, expected in wanted.items():
        found = value(name, batch, scores, scores=PAIR)
        assert found == pytest.approx(expected, abs=1e-12), name


def test_a_teacher_scores_the_texts_of_lists() -> None:
    """Its vectors give what their dot products give as scores."""
    batch, _ = ragged()
    teacher = make_batch(sentences=4, dimension=5, seed=9)
    taught: dict[str, Any] = {"anchor": teacher.views["anchor"]}
    scores: dict[str, Any] = {}
    for name, column, many in (("positive", "p", 3), ("negative", "n", 3)):
        rows = batch.views[name]["sentence"]
        draws = torch.Generator().manual_seed(len(name))
        vectors = torch.randn(len(rows), 5, dtype=torch.float64, generator=draws)
        order = torch.randperm(len(rows), generator=draws)
        taught[name] = {"sentence": replace(rows, vectors=vectors).take(order)}
        grid = torch.zeros(4, many, dtype=torch.float64)
        grid[rows.owner, rows.text] = (teacher.anchors[rows.owner] * vectors).sum(1)
        scores[column] = grid.tolist()
    for name in ("kl", "margin-mse"):
        for candidates in ("own", "list"):
            part = make_part("loss", name, candidates=candidates, views=("negative",))
            ctx = make_context(batch, vectors=lambda view, branch: taught[view])
            given = batch.targets["positive"], ctx.negatives(batch, part.options), ctx
            found: Tensor = part(batch, *given).value
            wanted = value(name, batch, scores, candidates=candidates, scores=PAIR)
            assert float(found) == pytest.approx(wanted, abs=1e-12), (name, candidates)


def test_the_plan_lays_columns_beside_views() -> None:
    columns = {"positive": "text", "negative": "text", "p": "float", "n": "float"}
    sets = ["views.negative.column=negative", "loss.kl.scores=['p','n']",
            "loss.kl.candidates=list"]  # fmt: skip
    run = compose(kinds={"loss": ["kl"]}, sets=sets, corpus=tiny_corpus(columns=columns))
    assert run.needed_columns.beside == {"p": "positive", "n": "negative"}
    (part,) = run.of("loss")
    assert part.spec.declared("reads", part.options)["n"] == PerText("float", "negative")
    more = [*sets, "loss.kl.scores=['p']"]
    line = refusal(compose, kinds={"loss": ["kl"]}, sets=more, corpus=tiny_corpus(columns=columns))
    assert "one column each for positive, negative" in line
    margins = [*sets[:1], "loss.margin-mse.scores=['p']", "loss.margin-mse.candidates=list"]
    line = refusal(
        compose, kinds={"loss": ["margin-mse"]}, sets=margins, corpus=tiny_corpus(columns=columns)
    )
    assert "one column each for positive, negative" in line
