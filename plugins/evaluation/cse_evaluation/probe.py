"""Logistic regression on frozen features, its regularisation chosen as SentEval chooses it.

Conneau and Kiela (2018), "SentEval: an evaluation toolkit for universal sentence representations";
their ``tools/validation.py`` with ``usepytorch = False``:

- without a test part, cross-validation with 10 folds, and within each training part again 10 folds
  that choose C from 2^-2 .. 2^3;
- with a train and a test part, 10 folds of the training part choose C from 2^-1 .. 2^5;
- with a dev part too, dev chooses C from 2^-2 .. 2^3, and dev is never trained on.

What differs: several classes are one softmax (in their day one against the rest); the optimiser is
L-BFGS in float32, started for each C at the solution of the C before; of a training part of more
than ``MOST_FOLDED`` rows a tenth is held out once in place of the folds. ``senteval.py`` is the
same model by Adam and early stopping, as the papers' tables have it.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cse_core.suites import Progress

GRID = tuple(2.0**power for power in range(-2, 4))
GRID_WITHOUT_DEV = tuple(2.0**power for power in range(-1, 6))
FOLDS = 10
SEED = 1111
"""SentEval's seed of the folds."""
MOST_FOLDED = 50_000
"""Of larger training parts a tenth is held out once to choose C."""
_TOLERANCE = 1e-5
_MOST_ITERATIONS = 1000

Rows = NDArray[np.int64]
Classes = NDArray[np.int64]
Features = Callable[[Rows], Any]
"""Features ``[N, F]`` of all rows, dense or sparse, made by only the rows that are trained on."""


@dataclass(frozen=True)
class Split:
    """Rows of a task by what they are for.

    Without ``dev`` folds of ``train`` choose C; without ``test`` the folds of a cross-validation
    are scored.
    """

    train: Rows
    dev: Rows | None = None
    test: Rows | None = None


@dataclass(frozen=True)
class Choice:
    """A training part, its features, the splits of it that choose C, and the rows to score.

    Attributes:
        dev: The rows of the dev part, None where folds of ``train`` choose.
        grid: The values of C that logistic regression tries.
    """

    features: Any
    train: Rows
    held_out: Sequence[tuple[Rows, Rows]]
    scored: Rows
    dev: Rows | None
    grid: Sequence[float]


@dataclass(frozen=True)
class Fitted:
    """What a classifier chose and predicted.

    Attributes:
        rows: Rows that were scored.
        predicted: Class of each of them ``[len(rows)]``.
        chosen: The chosen C, or weight decay.
        dev_accuracy: In [0, 1], on what chose it; the mean over folds.
        converged: Whether the final fit reached its optimum.
    """

    rows: Rows
    predicted: Classes
    chosen: float
    dev_accuracy: float
    converged: bool = True


Fit = Callable[[Choice, Classes, int], Fitted]
"""Fits and scores a choice, by the classes of all rows and a seed."""


def probe(
    features: Features,
    classes: Classes,
    split: Split,
    fit: Fit,
    *,
    seed: int = SEED,
    progress: Progress | None = None,
    name: str = "",
) -> list[Fitted]:
    """Train and score a classifier on the classes ``[N]`` of rows, in each fold if there are folds.

    The same on any number of cores: each classifier is fitted by one thread.
    """
    choices = _choices(features, classes, split, seed)
    fits: list[Fitted] = []
    for choice in choices:
        fits.append(fit(choice, classes, seed))
        if progress is not None:
            progress(len(fits), len(choices), name)
    return fits


def _choices(features: Features, classes: Classes, split: Split, seed: int) -> list[Choice]:
    """List the rows to fit and to score, fold by fold."""
    if split.test is None:
        return [
            Choice(features(train), train, _held_out(train, classes, seed), scored, None, GRID)
            for train, scored in _folds(split.train, classes, seed)
        ]
    inner, grid = _held_out(split.train, classes, seed), GRID_WITHOUT_DEV
    if split.dev is not None:
        inner, grid = ((split.train, split.dev),), GRID
    return [Choice(features(split.train), split.train, inner, split.test, split.dev, grid)]


def _held_out(train: Rows, classes: Classes, seed: int) -> tuple[tuple[Rows, Rows], ...]:
    """Return the folds that choose C, each as rows to fit and rows held out."""
    return _folds(train, classes, seed)[: 1 if len(train) > MOST_FOLDED else None]


def _folds(rows: Rows, classes: Classes, seed: int) -> tuple[tuple[Rows, Rows], ...]:
    """Return 10 stratified folds of rows, fewer where a second class has fewer rows."""
    from sklearn.model_selection import StratifiedKFold

    second = Counter(classes[rows].tolist()).most_common(2)[1][1]
    maker = StratifiedKFold(min(FOLDS, second), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # A rare class may be in fewer folds; two classes are in each.
        warnings.simplefilter("ignore", UserWarning)
        return tuple((rows[a], rows[b]) for a, b in maker.split(rows, classes[rows]))


def logistic_regression(choice: Choice, classes: Classes, seed: int) -> Fitted:
    """Fit logistic regression; it draws nothing."""
    with _one_thread_each(), ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        scored = pool.map(lambda rows: _path(choice, classes, *rows), choice.held_out)
        means = np.mean(list(scored), axis=0)
        chosen = choice.grid[int(np.argmax(means))]
        model = _classifier(chosen).fit(choice.features[choice.train], classes[choice.train])
        predicted = model.predict(choice.features[choice.scored])
    converged = int(np.max(model.n_iter_)) < _MOST_ITERATIONS
    return Fitted(choice.scored, predicted, chosen, float(means.max()), converged)


def _path(choice: Choice, classes: Classes, fitted: Rows, rest: Rows) -> NDArray[np.float64]:
    """Return the accuracy on held-out rows for each C, from the strongest regularisation on."""
    train, dev = choice.features[fitted], choice.features[rest]
    model = _classifier(choice.grid[0], warm_start=True)
    accuracies = []
    for c in choice.grid:
        model.set_params(C=c)
        model.fit(train, classes[fitted])
        accuracies.append(float(np.mean(model.predict(dev) == classes[rest])))
    return np.array(accuracies)


def _classifier(c: float, warm_start: bool = False) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=c, tol=_TOLERANCE, max_iter=_MOST_ITERATIONS, warm_start=warm_start)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Keep BLAS to one thread: small fits are faster side by side, and round the same anywhere."""
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
