"""SentEval's own classifier: one linear layer, Adam, stopped early on held-out rows.

Conneau and Kiela (2018); their ``tools/classifier.py`` and ``tools/validation.py`` with
``usepytorch = True``, ``nhid = 0``, batches of 64, four epochs between looks at the held-out rows,
a tenacity of five looks, and weight decays of 10^-5 .. 10^-2: the "full" setting, by which SimCSE
and the papers after it report transfer tasks. The seed's draws are others than theirs.

Fits that differ only in their rows and decay are made at once: their weights are one tensor.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cse_evaluation.probe import Choice, Fitted, Rows

GRID = tuple(10.0**power for power in range(-5, -1))
"""Weight decays that are tried."""
BATCH = 64
EPOCHS = 4
"""Epochs between two looks at the held-out rows."""
TENACITY = 5
"""Looks without a better accuracy, over the whole training, after which the next one ends it."""
MOST_EPOCHS = 200
HELD_OUT = 0.05
"""Share of the training rows that stops the final classifier without a dev part."""


@dataclass(frozen=True)
class Fit:
    """Rows to train on, rows that stop it, and the weight decay."""

    train: Rows
    held: Rows
    decay: float


@dataclass(frozen=True)
class Layer:
    """A trained layer: ``weight`` ``[C, F]``, ``bias`` ``[C]``, its best accuracy on held rows."""

    weight: Tensor
    bias: Tensor
    accuracy: float

    def predict(self, features: Tensor) -> NDArray[np.int64]:
        """Return the class of each row of ``[N, F]``."""
        labels: NDArray[np.int64] = (features @ self.weight.T + self.bias).argmax(dim=1).numpy()
        return labels


def senteval_layer(choice: Choice, classes: NDArray[np.int64], seed: int) -> Fitted:
    """Fit SentEval's classifier; the features of the choice are dense.

    What chooses the weight decay also stops the fits that are compared: inner folds, folds of the
    training part, or dev. The final classifier is stopped by dev, or by a twentieth of its
    training rows.
    """
    target = torch.from_numpy(classes)
    given = torch.from_numpy(np.ascontiguousarray(choice.features, dtype=np.float32))
    tried = [Fit(*rows, decay) for decay in GRID for rows in choice.held_out]
    with _one_thread():
        layers = fit_all(given, target, tried, seed)
        means = np.reshape([layer.accuracy for layer in layers], (len(GRID), -1)).mean(axis=1)
        chosen = GRID[int(means.argmax())]
        train, dev = choice.train, choice.dev
        if dev is None:
            drawn = np.random.default_rng(seed).permutation(choice.train)
            few = max(1, int(HELD_OUT * len(drawn)))
            train, dev = drawn[few:], drawn[:few]
        (final,) = fit_all(given, target, [Fit(train, dev, chosen)], seed)
        predicted = final.predict(given[choice.scored])
        return Fitted(choice.scored, predicted, chosen, float(means.max()))


def fit_all(features: Tensor, classes: Tensor, fits: Sequence[Fit], seed: int) -> list[Layer]:
    """Return the layer of each fit at its best look, for features ``[N, F]`` and classes ``[N]``.

    The seed is that of each fit's weights at the start and of the order of its rows, whatever is
    fitted beside it.
    """
    by_steps: dict[int, list[int]] = defaultdict(list)
    for place, fit in enumerate(fits):
        by_steps[math.ceil(len(fit.train) / BATCH)].append(place)
    layers: dict[int, Layer] = {}
    for steps, places in by_steps.items():
        made = _fit_by_steps(features, classes, [fits[place] for place in places], steps, seed)
        layers.update(zip(places, made, strict=True))
    return [layers[place] for place in range(len(fits))]


def _fit_by_steps(
    features: Tensor, classes: Tensor, fits: Sequence[Fit], steps: int, seed: int
) -> list[Layer]:
    """Train K fits whose epochs have the same number of batches."""
    dev = [torch.from_numpy(fit.held) for fit in fits]
    draws = [torch.Generator().manual_seed(seed) for _ in fits]
    count, size = int(classes.max()) + 1, features.shape[1]
    bound = 1 / math.sqrt(size)  # torch's own start of a linear layer
    drawn = torch.stack([torch.rand(size + 1, count, generator=rng) for rng in draws])
    start = ((drawn * 2 - 1) * bound).transpose(1, 2)  # [K, C, F + 1]
    layers = [start[..., :size].contiguous(), start[..., size:].contiguous()]
    optimizer = torch.optim.Adam(layers, fused=True)
    best = [Layer(start[0], start[0], -1.0)] * len(fits)
    worse, running = [0] * len(fits), list(range(len(fits)))
    epochs = 0
    while running and epochs <= MOST_EPOCHS:
        weight, bias = optimizer.param_groups[0]["params"]
        decays = torch.tensor([fits[place].decay for place in running]).view(-1, 1, 1)
        for _ in range(EPOCHS):
            for rows, share in _batches(fits, running, steps, draws):
                _set_gradients(weight, bias, features, classes, rows, share)
                for values in (weight, bias):
                    values.grad.addcmul_(decays, values)
                optimizer.step()
        epochs += EPOCHS
        right = (weight @ features.T + bias).argmax(dim=1) == classes  # [K, N]
        going = []
        for row, place in enumerate(running):
            accuracy = float(right[row, dev[place]].double().mean())
            if accuracy > best[place].accuracy:
                best[place] = Layer(weight[row].clone(), bias[row, :, 0].clone(), accuracy)
            else:
                worse[place] += 1
            if worse[place] <= TENACITY:
                going.append(row)
        if len(going) < len(running):
            optimizer = _kept(optimizer, going)
            running = [running[row] for row in going]
    return best


def _kept(optimizer: torch.optim.Adam, rows: Sequence[int]) -> torch.optim.Adam:
    """Return the optimizer of only these fits: those that have stopped cost nothing more."""
    chosen = torch.tensor(rows, dtype=torch.long)
    old = optimizer.param_groups[0]["params"]
    kept = torch.optim.Adam([values[chosen] for values in old], fused=True)
    for before, after in zip(old, kept.param_groups[0]["params"], strict=True):
        state = optimizer.state[before]
        kept.state[after] = {n: v[chosen] if v.dim() else v for n, v in state.items()}
    return kept


def _set_gradients(
    weight: Tensor, bias: Tensor, features: Tensor, classes: Tensor, rows: Tensor, share: Tensor
) -> None:
    """Set the gradients of the cross-entropy, ``softmax - true class`` by the logits."""
    # Classes before rows in all products: matrices of few columns cost five times as much.
    batch = features.index_select(0, rows.flatten()).view(*rows.shape, -1)  # [K, BATCH, F]
    logits = torch.baddbmm(bias, weight, batch.transpose(1, 2))  # [K, C, BATCH]
    wrong = logits.softmax(dim=1)
    true = classes[rows].unsqueeze(1)
    wrong.scatter_add_(1, true, wrong.new_full((), -1.0).expand(true.shape))
    wrong *= share.unsqueeze(1)
    weight.grad = torch.bmm(wrong, batch)
    bias.grad = wrong.sum(dim=2, keepdim=True)


def _batches(
    fits: Sequence[Fit], running: Sequence[int], steps: int, draws: Sequence[torch.Generator]
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield an epoch's batches: rows ``[K, BATCH]`` and each one's share of its batch's mean."""
    rows = torch.zeros(len(running), steps * BATCH, dtype=torch.long)
    counted = torch.zeros(rows.shape)
    for row, place in enumerate(running):
        train = torch.from_numpy(fits[place].train)
        order = torch.randperm(len(train), generator=draws[place])
        rows[row, : len(order)] = train[order]
        counted[row, : len(order)] = 1.0
    for start in range(0, steps * BATCH, BATCH):
        batch = counted[:, start : start + BATCH]
        yield rows[:, start : start + BATCH], batch / batch.sum(dim=1, keepdim=True)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep torch to one thread: the numbers are the same on any number of cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
