"""SentEval's own classifier: one linear layer, Adam, stopped early on held-out rows.

Conneau and Kiela (2018); their ``tools/classifier.py`` and ``tools/validation.py`` with
``usepytorch = True``, ``nhid = 0``, batches of 64, four epochs between looks at the held-out rows,
a tenacity of five looks, and weight decays of 10^-5 .. 10^-2: the "full" setting, by which SimCSE
and the papers after it report transfer tasks. The seed's draws are others than theirs.

Fits that differ in their rows and decay alone are made at once: their weights are one tensor.
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

from cse_evaluation.probe import SEED, Features, Probed, Progress, Rows, Split, choices_of

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
class Fitted:
    """A trained layer: ``weight`` ``[F, C]``, ``bias`` ``[C]``, its best accuracy on held rows."""

    weight: Tensor
    bias: Tensor
    accuracy: float

    def predict(self, features: Tensor) -> NDArray[np.int64]:
        """Return the class of each row of ``[N, F]``."""
        found: NDArray[np.int64] = (features @ self.weight + self.bias).argmax(dim=1).numpy()
        return found


def probe_as_senteval(
    features: Features,
    classes: NDArray[np.int64],
    split: Split,
    *,
    seed: int = SEED,
    progress: Progress | None = None,
    name: str = "",
) -> Probed:
    """Train and score SentEval's classifier; arguments as of ``probe``.

    What chooses the weight decay also stops the fits that are compared: inner folds, folds of the
    training part, or dev. The final classifier is stopped by dev, or by a twentieth of its
    training rows. The features are dense.
    """
    choices, chosen_by = choices_of(features, classes, split, seed)
    target = torch.from_numpy(classes)
    fitted, chosen, accuracies = [], [], []
    with _one_thread():
        for number, choice in enumerate(choices):
            given = torch.from_numpy(np.ascontiguousarray(choice.features, dtype=np.float32))
            tried = [Fit(*rows, decay) for decay in GRID for rows in choice.held_out]
            found = fit_all(given, target, tried, seed)
            means = np.reshape([each.accuracy for each in found], (len(GRID), -1)).mean(axis=1)
            accuracies.append(means.max())
            chosen.append(GRID[int(means.argmax())])
            train, held = choice.train, split.dev
            if held is None:
                drawn = np.random.default_rng(seed).permutation(choice.train)
                few = max(1, int(HELD_OUT * len(drawn)))
                train, held = drawn[few:], drawn[:few]
            (final,) = fit_all(given, target, [Fit(train, held, chosen[-1])], seed)
            fitted.append(final.predict(given[choice.scored]))
            if progress is not None:
                progress(number + 1, len(choices), name)
    return Probed(
        rows=np.concatenate([choice.scored for choice in choices]),
        predicted=np.concatenate(fitted),
        fold=np.repeat(np.arange(len(choices)), [len(choice.scored) for choice in choices]),
        dev_accuracy=100 * float(np.mean(accuracies)),
        chosen=tuple(chosen),
        chosen_by=chosen_by,
        converged=True,
    )


def fit_all(features: Tensor, classes: Tensor, fits: Sequence[Fit], seed: int) -> list[Fitted]:
    """Return the layer of each fit at its best look.

    Args:
        features: ``[N, F]``.
        classes: ``[N]``.
        fits: Rows and decays.
        seed: Of each fit's weights at the start and of the order of its rows, whatever is fitted
            beside it.
    """
    by_steps: dict[int, list[int]] = defaultdict(list)
    for place, fit in enumerate(fits):
        by_steps[math.ceil(len(fit.train) / BATCH)].append(place)
    found: dict[int, Fitted] = {}
    for steps, places in by_steps.items():
        made = _fit_by_steps(features, classes, [fits[place] for place in places], steps, seed)
        found.update(zip(places, made, strict=True))
    return [found[place] for place in range(len(fits))]


def _fit_by_steps(
    features: Tensor, classes: Tensor, fits: Sequence[Fit], steps: int, seed: int
) -> list[Fitted]:
    """Train K fits whose epochs have the same number of batches."""
    draws = [torch.Generator().manual_seed(seed) for _ in fits]
    count, size = int(classes.max()) + 1, features.shape[1]
    bound = 1 / math.sqrt(size)  # torch's own start of a linear layer
    drawn = torch.stack([torch.rand(size + 1, count, generator=own) for own in draws])
    start = (drawn * 2 - 1) * bound
    weight = start[:, :size].clone().requires_grad_()
    bias = start[:, size:].clone().requires_grad_()
    decays = torch.tensor([fit.decay for fit in fits]).view(-1, 1, 1)
    held = torch.zeros(len(fits), len(classes), dtype=torch.bool)
    for place, fit in enumerate(fits):
        held[place, torch.from_numpy(fit.held)] = True
    optimizer = torch.optim.Adam([weight, bias])
    best = [Fitted(weight[0], bias[0], -1.0)] * len(fits)
    worse, running = [0] * len(fits), [True] * len(fits)
    epochs = 0
    while any(running) and epochs <= MOST_EPOCHS:
        for _ in range(EPOCHS):
            for rows, counted in _batches(fits, steps, draws):
                logits = torch.baddbmm(bias, features[rows], weight)  # [K, BATCH, C]
                losses = torch.nn.functional.cross_entropy(
                    logits.flatten(0, 1), classes[rows].flatten(), reduction="none"
                ).view_as(counted)
                loss = ((losses * counted).sum(dim=1) / counted.sum(dim=1)).sum()
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                with torch.no_grad():
                    for values in (weight, bias):
                        assert values.grad is not None
                        values.grad += decays * values
                optimizer.step()
        epochs += EPOCHS
        with torch.no_grad():
            right = (features @ weight + bias).argmax(dim=2) == classes  # [K, N]
            looks = (right & held).sum(dim=1).double() / held.sum(dim=1)
        for place, accuracy in enumerate(looks.tolist()):
            if not running[place]:
                continue
            if accuracy > best[place].accuracy:
                own = weight[place].detach().clone(), bias[place, 0].detach().clone()
                best[place] = Fitted(*own, accuracy)
            else:
                running[place] = worse[place] < TENACITY
                worse[place] += 1
    return best


def _batches(
    fits: Sequence[Fit], steps: int, draws: Sequence[torch.Generator]
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield an epoch's batches: rows ``[K, BATCH]`` and which of them count, 1 or 0."""
    rows = torch.zeros(len(fits), steps * BATCH, dtype=torch.long)
    counted = torch.zeros(rows.shape)
    for place, fit in enumerate(fits):
        order = torch.randperm(len(fit.train), generator=draws[place])
        rows[place, : len(order)] = torch.from_numpy(fit.train)[order]
        counted[place, : len(order)] = 1.0
    for start in range(0, steps * BATCH, BATCH):
        yield rows[:, start : start + BATCH], counted[:, start : start + BATCH]


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep torch to one thread: the numbers are the same on any number of cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
