"""What a linear classifier scored on a classification task."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cse_evaluation.probe import SEED, Probed

CLASSIFIERS = {
    "exact": "logistic regression",
    "senteval": "SentEval's linear layer (Adam, early stopping)",
}
"""The classifiers by the name that ``--classifier`` gives them, in words."""


@dataclass(frozen=True)
class Accuracy:
    """Scores x100 of a classifier.

    Attributes:
        accuracy: Share of rows whose label was predicted; of a cross-validation the mean of folds.
        f1: F1 of label 1, over all rows that were scored; None but for pairs labelled 0 and 1.
        folds: The accuracy of each fold, empty with a test part.
    """

    accuracy: float
    f1: float | None = None
    folds: tuple[float, ...] = ()


@dataclass(frozen=True)
class WordScore:
    """Scores of TF-IDF vectors in the place of an encoder's.

    Attributes:
        score: The scores.
        units: What was counted: words, or character 1-2-grams.
    """

    score: Accuracy
    units: str

    def to_json(self) -> dict[str, Any]:
        """Return the scores with what they were measured with."""
        value: dict[str, Any] = {"tfidf": round(self.score.accuracy, 4)}
        if self.score.f1 is not None:
            value["tfidf_f1"] = round(self.score.f1, 4)
        value["lexical"] = {"idf": "the training texts", "units": self.units}
        return value


@dataclass(frozen=True)
class TextLengths:
    """How long the texts of a task are for a model.

    Attributes:
        mean: Tokens of a text, special tokens counted.
        longer: Share x100 of the texts that are longer than the model takes: cut, or sliced.
    """

    mean: float
    longer: float


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    """The score of one task, or the mean over transfer tasks.

    Attributes:
        name: The task, ``mr``; ``transfer.mean`` over all seven; ``transfer.mean-of-4`` over fewer.
        score: Its scores.
        setting: ``cross-validation``, ``train-test`` or ``train-dev-test``; ``mean``.
        train: Rows to train on; all rows of a cross-validation.
        test: Rows that were scored.
        majority: Share x100 of the most frequent training label among the scored ones.
        labels: How many labels there are.
        folds: Folds that were scored, None with a test part.
        probed: What the classifier did, None for a mean.
        texts: What became of long texts.
        tokens: How long the texts are, None where nobody counted.
        files: The files.
        fingerprint: Equal where texts, labels and parts are equal.
        lexical: Scores of words alone, None where they were not asked for.
        tasks: The tasks that a mean is over.
        seed: Of the folds.
        seeds: Training runs of the encoder behind the number.
        classifier: One of ``CLASSIFIERS``.
        right: Whether each scored row's label was predicted ``[test]``, in the order of the rows;
            None for a mean.
    """

    name: str
    score: Accuracy
    setting: str
    train: int
    test: int
    majority: float
    labels: int = 0
    folds: int | None = None
    probed: Probed | None = None
    texts: str = ""
    tokens: TextLengths | None = None
    files: tuple[str, ...] = ()
    fingerprint: str = ""
    lexical: WordScore | None = None
    tasks: tuple[str, ...] = ()
    seed: int = SEED
    seeds: int = 1
    classifier: str = "exact"
    right: NDArray[np.bool_] | None = field(default=None, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return everything but the predictions, scores rounded to 4 places."""
        value: dict[str, Any] = {"accuracy": round(self.score.accuracy, 4)}
        if self.score.f1 is not None:
            value["f1"] = round(self.score.f1, 4)
        value |= {
            "folds": self.folds,
            "setting": self.setting,
            "split": "test" if "test" in self.setting else "",
            "seeds": self.seeds,
            "train": self.train,
            "test": self.test,
            "majority": round(self.majority, 4),
        }
        if self.lexical:
            value |= self.lexical.to_json()
        if self.probed is None:
            return value | {"tasks": list(self.tasks)}
        value |= {
            "labels": self.labels,
            "files": list(self.files),
            "fingerprint": self.fingerprint,
            "texts": self.texts,
            "classifier": CLASSIFIERS[self.classifier],
            "c": list(self.probed.chosen),
            "c_chosen_by": self.probed.chosen_by,
            "dev_accuracy": round(self.probed.dev_accuracy, 4),
            "converged": self.probed.converged,
            "seed": self.seed,
        }
        if self.tokens is not None:
            value["tokens"] = {
                "mean": round(self.tokens.mean, 4),
                "longer": round(self.tokens.longer, 4),
            }
        if self.score.folds:
            value["fold_accuracies"] = [round(each, 4) for each in self.score.folds]
        return value
