"""Graded pairs as a dev set: what training is scored on, to log and to choose a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cse_core.evaluation.suites import DevSet, Encode
from cse_evaluation.geometry import measure
from cse_evaluation.pairs import PairSet, is_binary, spearman
from cse_evaluation.sts import binary_scores
from cse_evaluation.vectors import EncodedTexts, row_cosines

if TYPE_CHECKING:
    from cse_core.parts import Metric


@dataclass(frozen=True)
class PairDevSet(DevSet):
    """Graded pairs that training is scored on."""

    pairs: PairSet

    @classmethod
    def of(cls, pairs: PairSet) -> PairDevSet:
        """Return the dev set of a file of pairs."""
        more = ("average_precision",) if is_binary(pairs.gold) else ()
        choices = ("spearman", *more)
        return cls(pairs.name, choices, len(pairs.texts), pairs)

    def measure(self, encode: Encode, metrics: Mapping[str, Metric]) -> dict[str, float]:
        """Return its scores and the numbers of the metrics; each text is encoded once."""
        known = EncodedTexts(encode, self.pairs.texts)
        found = self.score(known)
        for name, metric in metrics.items():
            numbers = metric.compute(known, self.pairs)
            found.update({f"{name}.{key}": value for key, value in numbers.items()})
        return found

    def score(self, encode: Encode) -> dict[str, float]:
        """Score an encoder.

        Returns:
            ``spearman`` (x100, all pairs together; 0 where all cosines are equal, so that a
            collapsed model is never chosen), ``alignment``, ``uniformity``, ``mean_cosine``,
            ``effective_rank`` and of pairs labelled 0 and 1 ``average_precision``; one that the
            pairs do not define (alignment without a pair above the threshold) is left out.

        Raises:
            CseError: If the encoder's vectors are not finite.
        """
        encoded = EncodedTexts(encode, self.pairs.texts)
        first, second = encoded.pair_vectors(self.pairs)
        geometry = measure(self.pairs, first, second, encoded.unit(self.pairs.texts))
        cosines = row_cosines(first, second)
        scores = {"spearman": spearman(self.pairs.gold, cosines) or 0.0}
        if "average_precision" in self.choices:
            binary = binary_scores(self.pairs.gold, cosines)
            scores["average_precision"] = binary["average_precision"]
        names = ("alignment", "uniformity", "mean_cosine", "effective_rank")
        measured = {name: geometry[name]["value"] for name in names}
        return scores | {name: value for name, value in measured.items() if value is not None}
