"""Semantic textual similarity: how well cosines rank pairs as people did.

The setting is "all", that of Gao et al. (2021), "SimCSE", appendix B: one Spearman correlation
over the pairs of all subsets of a set together, no regressor on top.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cse_core.errors import CseError
from cse_core.evaluation.suites import Encode
from cse_evaluation.binary import BinaryScore, binary_score
from cse_evaluation.geometry import Geometry, measure
from cse_evaluation.geometry_json import geometry_json
from cse_evaluation.lexical import TextCollection, jaccard, tfidf, units_of
from cse_evaluation.pairs import PairSet, spearman
from cse_evaluation.suite import STS_TESTS
from cse_evaluation.vectors import EncodedTexts, row_cosines


@dataclass(frozen=True)
class SubsetScore:
    """Spearman's correlation x100 over the pairs of one subset; None where it is undefined."""

    spearman: float | None
    pairs: int

    def to_json(self) -> dict[str, Any]:
        """Return both fields."""
        return {"spearman": _rounded(self.spearman), "pairs": self.pairs}


@dataclass(frozen=True)
class LexicalScore:
    """Scores x100 of words alone on the same pairs.

    Attributes:
        tfidf: Spearman's correlation of TF-IDF cosines.
        jaccard: Spearman's correlation of the Jaccard index.
        idf: Which texts the inverse document frequencies are from.
        units: What was counted: words, or character 1-2-grams.
        tfidf_binary: Of pairs labelled 0 and 1, how well TF-IDF tells them apart.
        jaccard_binary: The same of the Jaccard index.
    """

    tfidf: float | None
    jaccard: float | None
    idf: str
    units: str
    tfidf_binary: BinaryScore | None = None
    jaccard_binary: BinaryScore | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the scores with what they were measured with."""
        return {
            "tfidf": _rounded(self.tfidf),
            "jaccard": _rounded(self.jaccard),
            "lexical": {"idf": self.idf, "units": self.units},
        }


@dataclass(frozen=True, kw_only=True)
class Result:
    """The score of one set, or the mean over the test sets of the suite.

    Attributes:
        name: The set, ``stsb.test``; ``mean`` over all seven test sets; ``mean-of-4`` over fewer.
        spearman: Spearman's correlation x100; None where it is undefined (all cosines equal).
        pairs: Pairs that it is over.
        setting: ``all``: the pairs of all subsets ranked together.
        split: ``train``, ``dev``, ``test``, or empty where the name does not say.
        file: The file, empty for a mean.
        sets: The sets that a mean is over, empty for a set.
        fingerprint: Equal where texts and scores of the pairs are equal.
        subsets: The score of each subset, where the file names them.
        lexical: Scores of words alone, None where they were not asked for.
        geometry: Alignment and the like, None for a mean.
        binary: Average precision and ROC AUC where the pairs are labelled 0 and 1, else None.
        metrics: Numbers of installed metrics that were asked for, ``NAME.number``.
        seeds: Training runs behind the number.
        cosines: Cosine of each pair ``[P]``, empty for a mean; not in the JSON.
    """

    name: str
    spearman: float | None
    pairs: int
    setting: str = "all"
    split: str = ""
    file: str = ""
    sets: tuple[str, ...] = ()
    fingerprint: str = ""
    subsets: dict[str, SubsetScore] = field(default_factory=dict)
    lexical: LexicalScore | None = None
    geometry: Geometry | None = None
    binary: BinaryScore | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    seeds: int = 1
    cosines: NDArray[np.float64] = field(
        default_factory=lambda: np.zeros(0), repr=False, compare=False
    )

    def to_json(self) -> dict[str, Any]:
        """Return everything but the cosines, numbers rounded to 4 places or more."""
        value: dict[str, Any] = {
            "spearman": _rounded(self.spearman),
            "pairs": self.pairs,
            "setting": self.setting,
            "split": self.split,
            "seeds": self.seeds,
        }
        if self.metrics:
            value["metrics"] = dict(self.metrics)
        if self.sets:
            value["sets"] = list(self.sets)
        else:
            value |= {"file": self.file, "fingerprint": self.fingerprint}
        if self.subsets:
            value["subsets"] = {name: score.to_json() for name, score in self.subsets.items()}
        if self.binary:
            value["binary"] = self.binary.to_json()
            words = self.lexical
            if words and words.tfidf_binary and words.jaccard_binary:
                value["binary"]["tfidf"] = words.tfidf_binary.to_json()
                value["binary"]["jaccard"] = words.jaccard_binary.to_json()
        if self.lexical:
            value |= self.lexical.to_json()
        if self.geometry:
            value |= geometry_json(self.geometry)
        return value


def evaluate_sts(
    encode: Encode,
    sets: Sequence[PairSet],
    baselines: bool = True,
    idf: TextCollection | None = None,
) -> list[Result]:
    """Score an encoder on sets of graded pairs.

    Args:
        encode: The encoder; called once, with the distinct sentences of all sets. What is an
            ``EncodedTexts`` already says itself what the vectors of a pair are.
        sets: The sets, as ``find_suite`` or ``read_pairs`` gives them.
        baselines: Also score TF-IDF and Jaccard on the same pairs.
        idf: Texts for TF-IDF's document frequencies; by default each set's own sentences.

    Returns:
        One result for each set, in order; then, where several test sets of the suite are among
        them, their mean.

    Raises:
        CseError: If two sets have one name, or the encoder's vectors are not finite.
    """
    names = [pairs.name for pairs in sets]
    for name in names:
        if names.count(name) > 1:
            files = ", ".join(str(pairs.path) for pairs in sets if pairs.name == name)
            raise CseError(f"two sets are called {name!r}: {files}", hint="rename one of the files")
    encoded = (
        encode
        if isinstance(encode, EncodedTexts)
        else EncodedTexts(encode, (text for pairs in sets for text in pairs.texts))
    )
    results = [_score_set(pairs, encoded, baselines, idf) for pairs in sets]
    mean = _suite_mean(results)
    return [*results, mean] if mean else results


def _score_set(
    pairs: PairSet, encoded: EncodedTexts, baselines: bool, idf: TextCollection | None
) -> Result:
    first, second = encoded.pair_vectors(pairs)
    cosines = row_cosines(first, second)
    gold = [pair.score for pair in pairs.pairs]
    return Result(
        name=pairs.name,
        spearman=spearman(gold, cosines),
        pairs=len(pairs.pairs),
        split=split_of(pairs),
        file=pairs.file,
        fingerprint=fingerprint(pairs),
        subsets=_score_subsets(pairs, cosines),
        lexical=score_words(pairs, idf) if baselines else None,
        geometry=measure(pairs, first, second, encoded.unit(pairs.texts)),
        binary=binary_score(gold, cosines),
        cosines=cosines,
    )


def split_of(pairs: PairSet) -> str:
    """Return ``train``, ``dev`` or ``test`` where the set's name ends so, else an empty string."""
    last = pairs.name.rpartition(".")[2]
    return last if last in ("train", "dev", "test") else ""


def fingerprint(pairs: PairSet) -> str:
    """Return 12 hexadecimal digits that differ where any text or score differs."""
    digest = hashlib.sha256()
    for pair in pairs.pairs:
        digest.update(repr((pair.sentence1, pair.sentence2, pair.score)).encode())
    return digest.hexdigest()[:12]


def _score_subsets(pairs: PairSet, cosines: NDArray[np.float64]) -> dict[str, SubsetScore]:
    rows: dict[str, list[int]] = {}
    for row, pair in enumerate(pairs.pairs):
        rows.setdefault(pair.subset, []).append(row)
    if set(rows) == {""}:
        return {}
    return {
        name: SubsetScore(
            spearman([pairs.pairs[row].score for row in members], cosines[members]), len(members)
        )
        for name, members in sorted(rows.items())
    }


def score_words(pairs: PairSet, idf: TextCollection | None = None) -> LexicalScore:
    """Score TF-IDF and Jaccard on the pairs of a set, in the setting "all"."""
    gold = [pair.score for pair in pairs.pairs]
    by_tfidf, by_jaccard = tfidf(pairs, idf), jaccard(pairs)
    return LexicalScore(
        tfidf=spearman(gold, by_tfidf),
        jaccard=spearman(gold, by_jaccard),
        idf=idf.name if idf else f"the sentences of {pairs.file}",
        units=units_of(pairs.texts)[1],
        tfidf_binary=binary_score(gold, by_tfidf),
        jaccard_binary=binary_score(gold, by_jaccard),
    )


def _suite_mean(results: Sequence[Result]) -> Result | None:
    tests = [result for result in results if result.name in STS_TESTS]
    if len(tests) < 2:
        return None
    words = [result.lexical for result in tests if result.lexical]
    lexical = None
    if words:
        same = {score.idf for score in words}
        lexical = LexicalScore(
            _mean([score.tfidf for score in words]),
            _mean([score.jaccard for score in words]),
            same.pop() if len(same) == 1 else "the sentences of each file",
            " or ".join(sorted({score.units for score in words})),
        )
    return Result(
        name="mean" if len(tests) == len(STS_TESTS) else f"mean-of-{len(tests)}",
        spearman=_mean([result.spearman for result in tests]),
        pairs=sum(result.pairs for result in tests),
        split="test",
        sets=tuple(result.name for result in tests),
        lexical=lexical,
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
