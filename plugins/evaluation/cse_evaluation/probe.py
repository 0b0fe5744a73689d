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
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

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
Progress = Callable[[int, int, str], None]
"""Hears how many of how many pieces of work are done, and which work it is."""


class Features(Protocol):
    """Features of rows, which may depend on the rows that are trained on (document frequencies)."""

    def of(self, train: Rows) -> Any:
        """Return the features ``[N, F]`` of all rows, dense or sparse, made by ``train`` alone."""


@dataclass(frozen=True)
class Split:
    """Rows of a task by what they are for.

    Attributes:
        train: Rows to train on.
        dev: Rows that choose C, None where folds of ``train`` do.
        test: Rows to score, None where the folds of a cross-validation are scored.
    """

    train: Rows
    dev: Rows | None = None
    test: Rows | None = None


@dataclass(frozen=True)
class Probed:
    """What a classifier did.

    Attributes:
        rows: Rows that were scored, in order.
        predicted: Class of each of them ``[len(rows)]``.
        fold: Fold of each of them; 0 with a test part.
        dev_accuracy: x100, of the chosen C on what chose it; the mean over folds.
        chosen: The chosen C, of each fold.
        chosen_by: ``10 inner folds``, ``10 folds of train``, ``a tenth of train`` or ``dev``.
        converged: Whether every final classifier reached its optimum.
    """

    rows: Rows
    predicted: NDArray[np.int64]
    fold: NDArray[np.int64]
    dev_accuracy: float
    chosen: tuple[float, ...]
    chosen_by: str
    converged: bool

    @property
    def folds(self) -> int:
        """Return the number of scored folds."""
        return len(self.chosen)


@dataclass(frozen=True)
class Choice:
    """A training part, its features, and the splits of it that choose C."""

    features: Any
    train: Rows
    held_out: tuple[tuple[Rows, Rows], ...]
    scored: Rows


def probe(
    features: Features,
    classes: NDArray[np.int64],
    split: Split,
    *,
    seed: int = SEED,
    progress: Progress | None = None,
    name: str = "",
) -> Probed:
    """Train and score logistic regression.

    The same on any number of cores: each classifier is fitted by one thread.

    Args:
        features: Features of the N rows.
        classes: Class of each row ``[N]``.
        split: Which rows are for what.
        seed: Of the folds.
        progress: Hears how far it is.
        name: What ``progress`` shows.
    """
    grid = GRID_WITHOUT_DEV if split.dev is None and split.test is not None else GRID
    choices, chosen_by = choices_of(features, classes, split, seed)
    jobs = [(choice, *rows) for choice in choices for rows in choice.held_out]
    total, done = len(jobs) + len(choices), 0

    def scores(job: tuple[Choice, Rows, Rows]) -> NDArray[np.float64]:
        choice, fitted, held = job
        return _path(choice.features, classes, fitted, held, grid)

    def final(job: tuple[Choice, float]) -> tuple[NDArray[np.int64], bool]:
        choice, c = job
        model = _classifier(c).fit(choice.features[choice.train], classes[choice.train])
        return model.predict(choice.features[choice.scored]), _converged(model)

    def shown(found: Iterator[Any]) -> Iterator[Any]:
        nonlocal done
        for each in found:
            done += 1
            if progress is not None:
                progress(done, total, name)
            yield each

    with _one_thread_each(), ThreadPoolExecutor(_cores()) as pool:
        accuracies = list(shown(pool.map(scores, jobs)))
        sizes = np.cumsum([0, *(len(choice.held_out) for choice in choices)])
        means = [
            np.mean(accuracies[start:stop], axis=0)
            for start, stop in zip(sizes[:-1], sizes[1:], strict=True)
        ]
        chosen = tuple(grid[int(np.argmax(mean))] for mean in means)
        ends = list(shown(pool.map(final, zip(choices, chosen, strict=True))))
    return Probed(
        rows=np.concatenate([choice.scored for choice in choices]),
        predicted=np.concatenate([predicted for predicted, _ in ends]),
        fold=np.repeat(np.arange(len(choices)), [len(choice.scored) for choice in choices]),
        dev_accuracy=100 * float(np.mean([mean.max() for mean in means])),
        chosen=chosen,
        chosen_by=chosen_by,
        converged=all(converged for _, converged in ends),
    )


def choices_of(
    features: Features, classes: NDArray[np.int64], split: Split, seed: int
) -> tuple[list[Choice], str]:
    """Return what is fitted and scored, fold by fold, and by which rows a setting is chosen."""
    made = []
    if split.test is None:
        for train, scored in _folds(split.train, classes, seed):
            inner, by = _held_out(train, classes, seed)
            made.append(Choice(features.of(train), train, inner, scored))
        return made, by.replace("folds of train", "inner folds")
    if split.dev is None:
        inner, by = _held_out(split.train, classes, seed)
    else:
        inner, by = ((split.train, split.dev),), "dev"
    return [Choice(features.of(split.train), split.train, inner, split.test)], by


def _held_out(
    train: Rows, classes: NDArray[np.int64], seed: int
) -> tuple[tuple[tuple[Rows, Rows], ...], str]:
    folds = _folds(train, classes, seed)
    if len(train) > MOST_FOLDED:
        return folds[:1], "a tenth of train"
    return folds, f"{len(folds)} folds of train"


def _folds(rows: Rows, classes: NDArray[np.int64], seed: int) -> tuple[tuple[Rows, Rows], ...]:
    """Return 10 stratified folds of rows, fewer where a second class has fewer rows."""
    from sklearn.model_selection import StratifiedKFold

    second = Counter(classes[rows].tolist()).most_common(2)[1][1]
    maker = StratifiedKFold(min(FOLDS, second), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # A rare class may be in fewer folds; two classes are in each.
        warnings.simplefilter("ignore", UserWarning)
        return tuple((rows[a], rows[b]) for a, b in maker.split(rows, classes[rows]))


def _path(
    features: Any, classes: NDArray[np.int64], fitted: Rows, held: Rows, grid: Sequence[float]
) -> NDArray[np.float64]:
    """Return the accuracy on held-out rows for each C, from the strongest regularisation on."""
    train, dev = features[fitted], features[held]
    model = _classifier(grid[0], warm_start=True)
    accuracies = []
    for c in grid:
        model.set_params(C=c)
        model.fit(train, classes[fitted])
        accuracies.append(float(np.mean(model.predict(dev) == classes[held])))
    return np.array(accuracies)


def _classifier(c: float, warm_start: bool = False) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=c, tol=_TOLERANCE, max_iter=_MOST_ITERATIONS, warm_start=warm_start)


def _converged(model: Any) -> bool:
    return int(np.max(model.n_iter_)) < _MOST_ITERATIONS


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Keep BLAS to one thread: small fits are faster side by side, and round the same anywhere."""
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
