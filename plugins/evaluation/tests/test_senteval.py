"""SentEval's classifier against a plain loop over torch's own layer and optimiser."""

import copy
import math

import numpy as np
import pytest
import torch
from cse_evaluation import probe as probe_module
from cse_evaluation.probe import Fitted, Split, probe
from cse_evaluation.senteval import (
    BATCH,
    EPOCHS,
    GRID,
    HELD_OUT,
    MOST_EPOCHS,
    TENACITY,
    Fit,
    fit_all,
    senteval_layer,
)
from numpy.typing import NDArray
from torch import nn

SIZE = 12


def probed(
    points: NDArray[np.float32], classes: NDArray[np.int64], split: Split, seed: int = 1111
) -> list[Fitted]:
    return probe(lambda train: points, classes, split, senteval_layer, seed=seed)


def clouds(rows: int, classes: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    draw = np.random.default_rng(5)
    of_class = draw.integers(classes, size=rows)
    points = draw.normal(size=(classes, SIZE))[of_class] + 2 * draw.normal(size=(rows, SIZE))
    return points.astype(np.float32), of_class.astype(np.int64)


def slow(
    points: NDArray[np.float32], classes: NDArray[np.int64], fit: Fit, seed: int
) -> tuple[nn.Linear, float]:
    """Train one layer as SentEval's PyTorchClassifier.fit does."""
    draws = torch.Generator().manual_seed(seed)
    count = int(classes.max()) + 1
    layer = nn.Linear(SIZE, count)
    start = (torch.rand(SIZE + 1, count, generator=draws) * 2 - 1) / math.sqrt(SIZE)
    layer.load_state_dict({"weight": start[:SIZE].T, "bias": start[SIZE]})
    optimizer = torch.optim.Adam(layer.parameters(), weight_decay=fit.decay)
    x, y = torch.from_numpy(points), torch.from_numpy(classes)
    best, best_accuracy, count_of_stops, epochs = copy.deepcopy(layer), -1.0, 0, 0
    stop = False
    while not stop and epochs <= MOST_EPOCHS:
        for _ in range(EPOCHS):
            order = torch.from_numpy(fit.train)[torch.randperm(len(fit.train), generator=draws)]
            for rows in order.split(BATCH):
                optimizer.zero_grad()
                nn.functional.cross_entropy(layer(x[rows]), y[rows]).backward()
                optimizer.step()
        epochs += EPOCHS
        held = torch.from_numpy(fit.held)
        accuracy = float((layer(x[held]).argmax(dim=1) == y[held]).double().mean())
        if accuracy > best_accuracy:
            best, best_accuracy = copy.deepcopy(layer), accuracy
        else:
            stop = count_of_stops >= TENACITY
            count_of_stops += 1
    return best, best_accuracy


def test_fits_made_at_once_equal_a_loop_over_each() -> None:
    points, of_class = clouds(330, 5)
    rows = np.random.default_rng(1).permutation(330)
    fits = [Fit(rows[:200], rows[200:260], 1e-2), Fit(rows[60:], rows[:60], 1e-5),
            Fit(rows[:192], rows[192:], 1e-3), Fit(rows[:193], rows[193:], 1e-3)]  # fmt: skip
    found = fit_all(torch.from_numpy(points), torch.from_numpy(of_class), fits, 7)
    for each, fit in zip(found, fits, strict=True):
        layer, accuracy = slow(points, of_class, fit, 7)
        assert each.accuracy == pytest.approx(accuracy)
        torch.testing.assert_close(each.weight, layer.weight, atol=1e-4, rtol=1e-3)
        torch.testing.assert_close(each.bias, layer.bias, atol=1e-4, rtol=1e-3)
        ours = each.predict(torch.from_numpy(points))
        theirs = layer(torch.from_numpy(points)).argmax(dim=1).numpy()
        assert np.mean(ours == theirs) > 0.99


def test_what_chooses_the_decay_and_what_stops_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_module, "FOLDS", 3)
    points, classes = clouds(240, 2)
    whole = np.arange(240)
    folded = probed(points, classes, Split(whole))
    assert len(folded) == 3 and {fitted.chosen for fitted in folded} <= set(GRID)
    assert sorted(np.concatenate([fitted.rows for fitted in folded]).tolist()) == whole.tolist()
    train, dev, test = whole[:140], whole[140:180], whole[180:]
    (held,) = probed(points, classes, Split(train, dev, test))
    best = [slow(points, classes, Fit(train, dev, decay), 1111) for decay in GRID]
    accuracies = [accuracy for _, accuracy in best]
    assert held.dev_accuracy == pytest.approx(max(accuracies))
    assert held.chosen == GRID[accuracies.index(max(accuracies))]
    layer, _ = best[accuracies.index(max(accuracies))]
    assert (held.predicted == layer(torch.from_numpy(points[test])).argmax(dim=1).numpy()).all()
    (split,) = probed(points, classes, Split(train, None, test))
    drawn = np.random.default_rng(1111).permutation(train)
    few = int(HELD_OUT * len(train))
    layer, _ = slow(points, classes, Fit(drawn[few:], drawn[:few], split.chosen), 1111)
    assert (split.predicted == layer(torch.from_numpy(points[test])).argmax(dim=1).numpy()).all()


def test_the_same_seed_gives_the_same_and_torch_keeps_its_threads() -> None:
    points, classes = clouds(120, 3)
    before = torch.get_num_threads()
    split = Split(np.arange(80), None, np.arange(80, 120))
    (first,), (again,), (other,) = (probed(points, classes, split, seed) for seed in (3, 3, 4))
    assert (first.predicted == again.predicted).all() and first.chosen == again.chosen
    assert (first.predicted != other.predicted).any() or first.dev_accuracy != other.dev_accuracy
    assert torch.get_num_threads() == before
