"""Semantic textual similarity: how well cosines rank pairs as people did.

The setting is "all", that of Gao et al. (2021), "SimCSE", appendix B: one Spearman correlation
over the pairs of all subsets of a set together, no regressor on top. Pairs labelled 0 or 1 also
have the average precision and the area under the ROC curve: the ties bound Spearman's correlation
(with half of the pairs labelled 1 a perfect ranking has 86.6), and these two reach 100.

As a dev set, graded pairs are what training is scored on, to log and to choose a checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cse import units_of
from cse_core.suites import DevSet, Encode
from cse_evaluation.geometry import measure
from cse_evaluation.lexical import jaccard, tfidf
from cse_evaluation.pairs import PairSet, is_binary, spearman
from cse_evaluation.results import Baseline, Result, mean_of, rounded
from cse_evaluation.vectors import EncodedTexts, row_cosines

if TYPE_CHECKING:
    from cse_core.parts import Metric

_TESTS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
STS_TESTS = tuple(f"{name}.test" for name in _TESTS)
"""The seven test sets whose mean the papers report."""


def score_pairs(
    encode: Encode,
    sets: Sequence[PairSet],
    words: Mapping[str, Baseline] | None = None,
    metrics: Mapping[str, Metric] | None = None,
) -> list[Result]:
    """Score an encoder on sets of graded pairs; it is called once, with all distinct sentences.

    ``words`` is what ``score_words`` gave for each set; ``metrics`` are computed too.

    Returns:
        One result for each set, in order; then, where several test sets of the suite are among
        them, their mean. Its items are the cosines.
    """
    encoded = EncodedTexts(encode, (text for pairs in sets for text in pairs.texts))
    known = words or {}
    results = [
        _score_set(pairs, encoded, known.get(pairs.name, {}), metrics or {}) for pairs in sets
    ]
    mean = mean_of(results, STS_TESTS, key="sets", sums=("pairs",), split="test", setting="all")
    return results + mean


def _score_set(
    pairs: PairSet, encoded: EncodedTexts, words: Baseline, metrics: Mapping[str, Metric]
) -> Result:
    first, second = encoded.pair_vectors(pairs)
    cosines = row_cosines(first, second)
    facts: dict[str, Any] = {
        "pairs": len(pairs.pairs),
        "file": pairs.file,
        "fingerprint": pairs.fingerprint,
    }
    beside = dict(words)
    binary_words = beside.pop("binary", {})
    if binary := binary_scores(pairs.gold, cosines):
        facts["binary"] = rounded({**binary, **binary_words})
    facts |= rounded(measure(pairs, first, second, encoded.unit(pairs.texts)), 6)
    if numbers := _metric_numbers(metrics, encoded, pairs):
        facts["metrics"] = numbers
    return Result.of(
        pairs.name,
        {"spearman": spearman(pairs.gold, cosines)},
        facts,
        split=pairs.split,
        setting="all",
        words=beside,
        items=cosines,
    )


def _metric_numbers(
    metrics: Mapping[str, Metric], encoded: EncodedTexts, pairs: PairSet
) -> dict[str, float]:
    results = {name: metric.compute(encoded, pairs) for name, metric in metrics.items()}
    return {f"{name}.{key}": value for name, part in results.items() for key, value in part.items()}


def binary_scores(gold: Sequence[float], values: NDArray[np.float64]) -> dict[str, Any]:
    """Score how well values ``[P]`` tell pairs labelled 1 from pairs labelled 0.

    ``average_precision`` x100 (a random ranking has about the share of pairs labelled 1),
    ``roc_auc`` x100 (a random ranking has 50) and ``positives``, the number of pairs labelled 1;
    nothing where the gold scores are not only 0 and 1.
    """
    if not is_binary(gold):
        return {}
    from sklearn.metrics import average_precision_score, roc_auc_score

    return {
        "average_precision": 100.0 * float(average_precision_score(gold, values)),
        "roc_auc": 100.0 * float(roc_auc_score(gold, values)),
        "positives": int(sum(gold)),
    }


def score_words(pairs: PairSet) -> Baseline:
    """Score TF-IDF and Jaccard on the pairs of a set, in the setting "all"."""
    values = {"tfidf": tfidf(pairs), "jaccard": jaccard(pairs)}
    facts: dict[str, Any] = {name: spearman(pairs.gold, row) for name, row in values.items()}
    facts["lexical"] = {"idf": f"the sentences of {pairs.file}", "units": units_of(pairs.texts)[1]}
    if is_binary(pairs.gold):
        facts["binary"] = {name: binary_scores(pairs.gold, row) for name, row in values.items()}
    return facts


@dataclass(frozen=True)
class PairDevSet(DevSet):
    """Graded pairs that training is scored on."""

    pairs: PairSet

    @classmethod
    def of(cls, pairs: PairSet) -> PairDevSet:
        """Return the dev set of a file of pairs."""
        choices = ("spearman", "average_precision") if is_binary(pairs.gold) else ("spearman",)
        return cls(pairs.name, choices, len(pairs.texts), pairs)

    def scored_texts(self) -> Iterable[str]:
        """List the sentences."""
        return self.pairs.texts

    def measure(self, encode: Encode, metrics: Mapping[str, Metric]) -> dict[str, float]:
        """Return its scores and the numbers of the metrics; each text is encoded once."""
        known = EncodedTexts(encode, self.pairs.texts)
        return self.score(known) | _metric_numbers(metrics, known, self.pairs)

    def score(self, encode: Encode) -> dict[str, float]:
        """Score an encoder.

        Returns:
            ``spearman`` (x100, all pairs together), ``alignment``, ``uniformity``, ``mean_cosine``,
            ``effective_rank`` and of pairs labelled 0 and 1 ``average_precision``; one that is not
            defined (Spearman where all cosines are equal, alignment without a pair above the
            threshold) is left out.
        """
        encoded = EncodedTexts(encode, self.pairs.texts)
        first, second = encoded.pair_vectors(self.pairs)
        geometry = measure(self.pairs, first, second, encoded.unit(self.pairs.texts))
        cosines = row_cosines(first, second)
        measured: dict[str, Any] = {"spearman": spearman(self.pairs.gold, cosines)}
        if "average_precision" in self.choices:
            binary = binary_scores(self.pairs.gold, cosines)
            measured["average_precision"] = binary["average_precision"]
        names = ("alignment", "uniformity", "mean_cosine", "effective_rank")
        measured |= {name: geometry[name]["value"] for name in names}
        return {name: value for name, value in measured.items() if value is not None}
