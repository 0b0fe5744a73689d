"""Negatives in tiles against all at once: the same losses and gradients, no square in memory."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_testkit import make_batch
from torch.utils._python_dispatch import TorchDispatchMode

from cse_core.functional import infonce_terms, places_of
from cse_core.options import LossOptions
from cse_core.types import Batch, Negatives, Positives
from cse_engine.step import tiles
from cse_engine.step.negatives import loss_negatives
from tests.engine.step.test_processes import as_one
from tests.fixtures.process import SEGMENTS
from tests.fixtures.processes import TwoProcesses
from tests.fixtures.tiny import Build, sentences

PLAIN = '[[pool]]\nuse = "cls"\n'
QUEUE = """
[[negatives]]
use = "queue"
branch = "ema"
[[branch]]
use = "ema"
"""
WATCHED = '[[negatives]]\nuse = "watching"\n'
READING = '[[loss]]\nuse = "infonce"\n[[loss]]\nuse = "mean-square"\n'
FEW = 20
"""Pairs of a tile: two or three anchors of a batch of eight."""


@pytest.mark.parametrize(
    ("recipe", "sets"),
    [
        (PLAIN, ["loss.infonce.directions=both", "loss.infonce.in_batch=both"]),
        (PLAIN, ["loss.infonce.similarity=dot", "loss.infonce.temperature=5"]),
        (PLAIN, ["loss.infonce.dimensions=[8,32]", "loss.infonce.same_document=mask"]),
        (PLAIN + QUEUE, ["loss.infonce.directions=both"]),
        (PLAIN + QUEUE, ["loss.infonce.negatives=stored"]),
        (PLAIN + WATCHED, ["loss.infonce.directions=both"]),
        (SEGMENTS, []),
    ],
)
def test_a_step_is_the_same(
    build: Build, recipe: str, sets: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = sentences(24)
    texts[9], texts[2] = texts[0], texts[1]
    columns = {"text": texts, "document": [f"d{i // 6}" for i in range(24)]}
    whole, some = (build(recipe, "model.dropout=0", *sets, columns=columns) for _ in range(2))
    for number in range(3):
        expected = whole.step(number)
        with monkeypatch.context() as patch:
            patch.setattr(tiles, "PAIRS", FEW)
            found = some.step(number)
        assert float(found.loss) == pytest.approx(float(expected.loss), rel=1e-6)
        for name, gradient in whole.gradients.items():
            difference = (some.gradients[name] - gradient).norm()
            assert difference < 1e-5 * gradient.norm() + 1e-6, name
        assert found.parts.keys() == expected.parts.keys()
        for name, value in expected.parts.items():
            within = {"abs": 2e-7} if name.endswith("margin") else {"rel": 1e-5}  # of two cosines
            assert float(found.parts[name]) == pytest.approx(float(value), **within), name


def test_what_a_store_logs_is_the_mean_over_the_anchors(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = build(PLAIN + WATCHED)
    store = bench.part("negatives.watching")
    store.log = True
    monkeypatch.setattr(tiles, "PAIRS", FEW + 4)
    result = bench.step(0)
    assert float(result.logged["watching.owner"]) == pytest.approx(3.5)
    assert {len(seen.mask) for _, seen in store.seen} == {1, 3, 2}


def large(count: int, **given: Any) -> tuple[Batch, Positives]:
    batch = make_batch(sentences=count, dimension=4, same_text={5: 2, 9: 2}, **given)
    anchors, positives = batch.anchors.requires_grad_(), batch.targets["positive"]
    return replace(batch, anchors=anchors), replace(
        positives, vectors=positives.vectors.requires_grad_()
    )


def terms(batch: Batch, targets: Positives, negatives: Negatives) -> list[torch.Tensor]:
    batch = replace(batch, targets={"positive": targets})
    found = infonce_terms(batch.anchors, targets, negatives, temperature=0.3)
    weights = torch.arange(len(found)).to(found) / len(found)
    return [found, *torch.autograd.grad((found * weights).sum(), (batch.anchors, targets.vectors))]


def test_terms_and_gradients_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    batch, targets = large(17)
    batch = replace(batch, targets={"positive": targets})
    options = LossOptions(in_batch="both")
    expected = terms(batch, targets, loss_negatives(batch, options))
    for pairs in (1, 40, 500):
        monkeypatch.setattr(tiles, "PAIRS", pairs)
        negatives = loss_negatives(batch, options)
        assert negatives.tiles is not None and negatives.tiles.all == negatives.tiles.own
        for found, wanted in zip(terms(batch, targets, negatives), expected, strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-14)
    monkeypatch.setattr(tiles, "PAIRS", 2 * 17 * 17)
    assert loss_negatives(batch, options).tiles is None


def test_an_anchor_without_negatives_and_others_of_no_weight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batch, targets = large(6)
    given = Negatives.of(torch.randn(5, 4, dtype=torch.float64), 6, name="given")
    mask, logs = given.mask.clone(), given.log_weights.clone()
    mask[1], logs[2], logs[3, :2] = True, -torch.inf, -torch.inf
    given = replace(given, mask=mask, log_weights=logs)
    expected = terms(batch, targets, loss_negatives(batch, LossOptions(), given))
    monkeypatch.setattr(tiles, "PAIRS", 10)
    negatives = loss_negatives(batch, LossOptions(), given)
    found = terms(batch, targets, negatives)
    assert negatives.tiles is not None and float(found[0][1]) == float(found[0][2]) == 0
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)
    assert torch.equal(negatives.mask, mask) and torch.equal(negatives.log_weights, logs)


def test_weights_with_gradient_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    batch, targets = large(6)
    weight = torch.zeros((), dtype=torch.float64, requires_grad=True)
    given = Negatives.of(torch.randn(5, 4, dtype=torch.float64), 6, name="given")
    given = replace(given, log_weights=given.log_weights + weight)
    monkeypatch.setattr(tiles, "PAIRS", 10)
    negatives = loss_negatives(batch, LossOptions(), given)
    found = infonce_terms(batch.anchors, targets, negatives, temperature=1.0)
    assert float(torch.autograd.grad(found.sum(), weight)[0]) > 0


class Largest(TorchDispatchMode):
    """The most numbers of a tensor that anything makes."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor) and 0 not in made.stride():
            self.size = max(self.size, made.numel())
        return made


def test_no_tensor_grows_with_the_square(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "PAIRS", 512)
    for count in (64, 256):
        batch, targets = large(count)
        batch = replace(batch, targets={"positive": targets})
        stored = Negatives.of(torch.randn(8, 4, dtype=torch.float64), count, name="stored")
        batch = replace(batch, stored={"stored": stored})
        with Largest() as largest:
            terms(batch, targets, loss_negatives(batch, LossOptions(same_document="mask")))
        assert largest.size <= max(512, 2 * count * 4)


def test_two_processes_are_one(encoder: str, folder: Path, two_processes: TwoProcesses) -> None:
    """Each computes its own anchors; the sum of the gradients is that of all of them."""
    for recipe in (PLAIN + QUEUE, SEGMENTS):
        sets = ("model.dropout=0", "train.lr=1e-4", "train.chunk_size=3")
        as_one(two_processes, folder, encoder, recipe, *sets, pairs=FEW, rtol=1e-5)


def test_places() -> None:
    rows = torch.tensor([7, 3, 7, 12])
    found = places_of(torch.tensor([12, 7, 5, 3, 99, -1]), rows)
    assert found.tolist() == [3, 0, -1, 1, -1, -1]
