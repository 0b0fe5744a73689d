"""Transfer to classification: a linear classifier on frozen vectors, words alone beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cse_core.errors import CseError
from cse_core.evaluation.suites import Encode
from cse_evaluation.lexical import Units, units_of
from cse_evaluation.probe import SEED, Probed, Progress, Rows, Split, probe
from cse_evaluation.task_result import Accuracy, TaskResult, TextLengths, WordScore
from cse_evaluation.tasks import TRANSFER_TASKS, Task
from cse_evaluation.vectors import EncodedTexts

MOST_SQUARED = 4096
"""Of at most so many texts TF-IDF vectors may be given by their inner products."""


def evaluate_tasks(
    encode: Encode,
    tasks: Sequence[Task],
    *,
    texts: str = "",
    measure: Callable[[Sequence[str]], TextLengths] | None = None,
    words: Mapping[str, WordScore] | None = None,
    classifier: str = "exact",
    seed: int = SEED,
    progress: Progress | None = None,
) -> list[TaskResult]:
    """Score an encoder's vectors, as they are, by a linear classifier on each task.

    The features are those of SentEval: u of a text; ``|u - v|`` and ``u * v`` of a pair.

    Args:
        encode: The encoder; called once, with the distinct texts of all tasks.
        tasks: The tasks.
        texts: What ``encode`` does with long texts, for the report.
        measure: Counts the tokens of texts; called for each task with all of its own.
        words: What ``score_words`` gave for each task.
        classifier: ``exact`` or ``senteval``, as ``CLASSIFIERS`` says.
        seed: Of the folds.
        progress: Hears how far it is.

    Returns:
        One result for each task, in order; then, where several transfer tasks are among them,
        their mean.

    Raises:
        CseError: If two tasks have one name, or the encoder's vectors are not finite.
    """
    names = [task.name for task in tasks]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise CseError(f"two tasks are called {twice!r}", hint="rename the files of one")
    encoded = EncodedTexts(encode, (text for t in tasks for text in (*t.texts, *t.seconds)))
    results = []
    classify: Callable[..., Probed] = probe
    if classifier == "senteval":
        from cse_evaluation.senteval import probe_as_senteval as classify
    for task in tasks:
        classes, split = _rows(task)
        probed = classify(
            _VectorFeatures(task, encoded),
            classes,
            split,
            seed=seed,
            progress=progress,
            name=f"classifiers of {task.name}",
        )
        results.append(
            replace(
                _result(task, classes, split, probed),
                texts=texts,
                tokens=measure((*task.texts, *task.seconds)) if measure is not None else None,
                lexical=(words or {}).get(task.name),
                seed=seed,
                classifier=classifier,
            )
        )
    mean = _transfer_mean(results)
    return [*results, mean] if mean else results


def score_words(task: Task, *, seed: int = SEED, progress: Progress | None = None) -> WordScore:
    """Score TF-IDF vectors on a task: the same folds, classifier and choice of C.

    Counts of words times log((N + 1) / (df + 1)) + 1 over the N texts trained on, scaled to
    length 1; ``|u - v|`` and ``u * v`` of a pair.
    """
    classes, split = _rows(task)
    units = units_of((*task.texts, *task.seconds))
    name = f"TF-IDF on {task.name}"
    features = _WordFeatures(task, units[0])
    probed = probe(features, classes, split, seed=seed, progress=progress, name=name)
    return WordScore(_accuracy(task, classes, probed), units[1])


class _VectorFeatures:
    """Features ``[N, D]`` of an encoder's vectors, ``[N, 2D]`` of pairs."""

    def __init__(self, task: Task, encoded: EncodedTexts) -> None:
        first = encoded(task.texts).astype(np.float32, copy=False)
        if not task.pairs:
            self._features = first
            return
        second = encoded(task.seconds).astype(np.float32, copy=False)
        self._features = np.hstack([np.abs(first - second), first * second])

    def of(self, train: Rows) -> NDArray[np.float32]:
        """Return the features, the same whatever is trained on."""
        return self._features


class _WordFeatures:
    """Sparse features ``[N, V]`` of words, ``[N, 2V]`` of pairs; V words of the training rows."""

    def __init__(self, task: Task, units: Units) -> None:
        from sklearn.feature_extraction.text import CountVectorizer

        def analyse(text: str) -> list[str]:
            return units(text) or [""]  # so that no training part is without any unit

        # Analysed once; each training part then keeps the words that it has itself.
        counter = CountVectorizer(analyzer=analyse, dtype=np.float32)
        counts = counter.fit_transform((*task.texts, *task.seconds))
        self._first = counts[: len(task.texts)]
        self._second = counts[len(task.texts) :] if task.pairs else None

    def of(self, train: Rows) -> Any:
        """Return the features, with the words and document frequencies of the training rows."""
        from scipy.sparse import hstack, vstack
        from sklearn.feature_extraction.text import TfidfTransformer

        known = self._first[train]
        if self._second is not None:
            known = vstack([known, self._second[train]])
        there = np.flatnonzero(np.asarray(known.sum(axis=0)).ravel())
        weigh = TfidfTransformer().fit(known[:, there])
        first = weigh.transform(self._first[:, there])
        if self._second is None:
            return _fewer_columns(first)
        second = weigh.transform(self._second[:, there])
        return _fewer_columns(hstack([abs(first - second), first.multiply(second)], format="csr"))


def _fewer_columns(features: Any) -> Any:
    """Return features ``[N, N]`` with the inner products of ``[N, V]``, where that is cheaper.

    A classifier's weights are sums of training rows, and their penalty and scores are inner
    products of rows: the coordinates do not matter. A step of L-BFGS over few long texts costs a
    tenth with N of them.
    """
    texts, units = features.shape
    if not texts < units or texts > MOST_SQUARED:
        return features
    products = np.asarray((features @ features.T).todense(), dtype=np.float64)
    # Rows may be equal or sums of others; a millionth of a row's length keeps them apart.
    products[np.diag_indices(texts)] += 1e-12 + 1e-12 * products.diagonal().max()
    try:
        return np.linalg.cholesky(products).astype(np.float32)
    except np.linalg.LinAlgError:  # more equal rows than rounding keeps apart: there are few
        return features


def _rows(task: Task) -> tuple[NDArray[np.int64], Split]:
    """Return the class of each row of all parts, and which rows are for what."""
    classes = np.unique(np.array(task.labels), return_inverse=True)[1].astype(np.int64)
    ends = np.cumsum([0, *(len(part) for part in task.parts)])
    rows = [np.arange(a, b) for a, b in zip(ends[:-1], ends[1:], strict=True)]
    if task.test is None:
        return classes, Split(rows[0])
    return classes, Split(rows[0], rows[1] if task.dev is not None else None, rows[-1])


def _accuracy(task: Task, classes: NDArray[np.int64], probed: Probed) -> Accuracy:
    gold = classes[probed.rows]
    right = probed.predicted == gold
    if task.test is None:
        folds = tuple(100 * float(right[probed.fold == n].mean()) for n in range(probed.folds))
        return Accuracy(fmean(folds), _f1(task, gold, probed.predicted), folds)
    return Accuracy(100 * float(right.mean()), _f1(task, gold, probed.predicted))


def _f1(task: Task, gold: NDArray[np.int64], predicted: NDArray[np.int64]) -> float | None:
    if not task.pairs or set(task.labels) != {"0", "1"}:
        return None
    both = int(((gold == 1) & (predicted == 1)).sum())
    either = int((gold == 1).sum() + (predicted == 1).sum())
    return 100 * 2 * both / either if either else 0.0


def _result(task: Task, classes: NDArray[np.int64], split: Split, probed: Probed) -> TaskResult:
    commonest = Counter(classes[split.train].tolist()).most_common(1)[0][0]
    score = _accuracy(task, classes, probed)
    if task.test is None:
        setting, folds = "cross-validation", probed.folds
    else:
        setting = "train-test" if task.dev is None else "train-dev-test"
        folds = None
    return TaskResult(
        name=task.name,
        score=score,
        setting=setting,
        train=len(split.train),
        test=len(probed.rows),
        majority=100 * float(np.mean(classes[probed.rows] == commonest)),
        labels=len(set(task.labels)),
        folds=folds,
        probed=probed,
        files=tuple(part.path.name for part in task.parts),
        fingerprint=task.fingerprint,
        right=(probed.predicted == classes[probed.rows])[np.argsort(probed.rows)],
    )


def _transfer_mean(results: Sequence[TaskResult]) -> TaskResult | None:
    tasks = [result for result in results if result.name in TRANSFER_TASKS]
    if len(tasks) < 2:
        return None
    words = [result.lexical for result in tasks if result.lexical]
    lexical = None
    if len(words) == len(tasks):
        units = " or ".join(sorted({each.units for each in words}))
        lexical = WordScore(Accuracy(fmean(each.score.accuracy for each in words)), units)
    whole = len(tasks) == len(TRANSFER_TASKS)
    return TaskResult(
        name="transfer.mean" if whole else f"transfer.mean-of-{len(tasks)}",
        score=Accuracy(fmean(result.score.accuracy for result in tasks)),
        setting="mean",
        train=sum(result.train for result in tasks),
        test=sum(result.test for result in tasks),
        majority=fmean(result.majority for result in tasks),
        lexical=lexical,
        tasks=tuple(result.name for result in tasks),
    )
