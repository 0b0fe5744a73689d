"""Transfer to classification: a linear classifier on frozen vectors, words alone beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from cse import Units, units_of
from cse_core.suites import Encode, Progress
from cse_evaluation.labelled import TRANSFER_TASKS, Task
from cse_evaluation.probe import (
    SEED,
    Classes,
    Features,
    Fit,
    Fitted,
    Rows,
    Split,
    logistic_regression,
    probe,
)
from cse_evaluation.results import Baseline, Result, mean_of, rounded
from cse_evaluation.vectors import EncodedTexts

CLASSIFIERS = {
    "exact": "logistic regression",
    "senteval": "SentEval's linear layer (Adam, early stopping)",
}
"""The classifiers by the name that ``--classifier`` gives them, in words."""


def score_tasks(
    encode: Encode,
    tasks: Sequence[Task],
    *,
    texts: str = "",
    words: Mapping[str, Baseline] | None = None,
    classifier: str = "exact",
    seed: int = SEED,
    progress: Progress | None = None,
) -> list[Result]:
    """Score an encoder's vectors, as they are, by a linear classifier on each task.

    The features are those of SentEval: u of a text; ``|u - v|`` and ``u * v`` of a pair. The
    encoder is called once, with the distinct texts of all tasks; what it does with long ones is in
    ``texts``, for the report. ``words`` is what ``score_words`` gave for each task, ``classifier``
    a name in ``CLASSIFIERS``.

    Returns:
        One result for each task, in order; then, where several transfer tasks are among them,
        their mean. Its items tell whether the label of each scored row was predicted ``[test]``,
        in the order of the rows.
    """
    encoded = EncodedTexts(encode, (text for t in tasks for text in (*t.texts, *t.seconds)))
    fit: Fit = logistic_regression
    if classifier == "senteval":
        from cse_evaluation.senteval import senteval_layer as fit
    results = []
    for task in tasks:
        name = f"classifiers of {task.name}"
        features = _vector_features(task, encoded)
        classes, split = _rows(task)
        fits = probe(features, classes, split, fit, seed=seed, progress=progress, name=name)
        facts: dict[str, Any] = {
            **_facts(task, fits, classes),
            "texts": texts,
            "classifier": CLASSIFIERS[classifier],
            "seed": seed,
        }
        scored, predicted = _predicted(fits)
        commonest = Counter(classes[split.train].tolist()).most_common(1)[0][0]
        majority = 100 * float(np.mean(classes[scored] == commonest))
        parts = "train-test" if task.dev is None else "train-dev-test"
        results.append(
            Result.of(
                task.name,
                {**_scores(task, fits, classes), "majority": majority},
                facts,
                split="" if task.test is None else "test",
                setting="cross-validation" if task.test is None else parts,
                words=(words or {}).get(task.name),
                items=(predicted == classes[scored])[np.argsort(scored)],
            )
        )
    mean = mean_of(results, TRANSFER_TASKS, prefix="transfer.", key="tasks", sums=("train", "test"),
                   split="", setting="mean")  # fmt: skip
    return results + mean


def score_words(task: Task, *, seed: int = SEED, progress: Progress | None = None) -> Baseline:
    """Score TF-IDF vectors on a task: the same folds, classifier and choice of C.

    Counts of words times log((N + 1) / (df + 1)) + 1 over the N texts trained on, scaled to
    length 1; ``|u - v|`` and ``u * v`` of a pair.
    """
    classes, split = _rows(task)
    units, named = units_of((*task.texts, *task.seconds))
    features, name = _word_features(task, units), f"TF-IDF on {task.name}"
    fits = probe(
        features, classes, split, logistic_regression, seed=seed, progress=progress, name=name
    )
    scores = {
        "tfidf" if score == "accuracy" else f"tfidf_{score}": value
        for score, value in _scores(task, fits, classes).items()
    }
    return {**scores, "lexical": {"idf": "the training texts", "units": named}}


def _vector_features(task: Task, encoded: EncodedTexts) -> Features:
    """Return features ``[N, D]`` of vectors, ``[N, 2D]`` of pairs, whatever is trained on."""
    features = encoded(task.texts).astype(np.float32, copy=False)
    if task.pairs:
        second = encoded(task.seconds).astype(np.float32, copy=False)
        features = np.hstack([np.abs(features - second), features * second])
    return lambda train: features


def _word_features(task: Task, units: Units) -> Features:
    """Return sparse features ``[N, V]`` of words, ``[N, 2V]`` of pairs; V words of ``train``."""
    from scipy.sparse import hstack, vstack
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    def analyse(text: str) -> list[str]:
        return units(text) or [""]  # so that no training part is without any unit

    # Analysed once; each training part then keeps the words that it has itself.
    counter = CountVectorizer(analyzer=analyse, dtype=np.float32)
    every = counter.fit_transform((*task.texts, *task.seconds))
    count = len(task.texts)
    counts = [every[:count], every[count:]] if task.pairs else [every]

    def features(train: Rows) -> Any:
        known = vstack([part[train] for part in counts], format="csr")
        used = np.flatnonzero(np.asarray(known.sum(axis=0)).ravel())
        weigh = TfidfTransformer().fit(known[:, used])
        first, *seconds = (weigh.transform(part[:, used]) for part in counts)
        for second in seconds:
            first = hstack([abs(first - second), first.multiply(second)], format="csr")
        return first

    return features


def _rows(task: Task) -> tuple[Classes, Split]:
    """Return the class of each row of all parts, and which rows are for what."""
    classes = np.unique(np.array(task.labels), return_inverse=True)[1].astype(np.int64)
    ends = np.cumsum([0, *(len(part) for part in task.parts)])
    rows = [np.arange(a, b) for a, b in zip(ends[:-1], ends[1:], strict=True)]
    if task.test is None:
        return classes, Split(rows[0])
    return classes, Split(rows[0], rows[1] if task.dev is not None else None, rows[-1])


def _predicted(fits: Sequence[Fitted]) -> tuple[Rows, Classes]:
    """Return the rows that were scored, fold by fold, and the class that each was given."""
    scored = np.concatenate([fitted.rows for fitted in fits])
    return scored, np.concatenate([fitted.predicted for fitted in fits])


def _accuracies(fits: Sequence[Fitted], classes: Classes) -> list[float]:
    """Return the accuracy x100 of each fold, or the only one."""
    return [100 * float((fit.predicted == classes[fit.rows]).mean()) for fit in fits]


def _scores(task: Task, fits: Sequence[Fitted], classes: Classes) -> dict[str, float]:
    """Return the ``accuracy`` x100, in a cross-validation its mean, and the ``f1`` of pairs."""
    from sklearn.metrics import f1_score

    scores = {"accuracy": fmean(_accuracies(fits, classes))}
    if task.pairs and set(task.labels) == {"0", "1"}:
        scored, predicted = _predicted(fits)  # of all folds together
        scores["f1"] = 100 * float(f1_score(classes[scored], predicted, zero_division=0))
    return scores


def _facts(task: Task, fits: Sequence[Fitted], classes: Classes) -> dict[str, Any]:
    """Return the facts of a task and its classifiers for ``--json``."""
    folds = _accuracies(fits, classes) if task.test is None else []
    return {
        "folds": len(folds) or None,
        "train": len(task.train),
        "test": sum(len(fitted.rows) for fitted in fits),
        "labels": len(set(task.labels)),
        "files": [part.path.name for part in task.parts],
        "fingerprint": task.fingerprint,
        "c": [fitted.chosen for fitted in fits],
        "dev_accuracy": round(100 * fmean(fitted.dev_accuracy for fitted in fits), 4),
        "converged": all(fitted.converged for fitted in fits),
        **({"fold_accuracies": rounded(folds)} if folds else {}),
    }
