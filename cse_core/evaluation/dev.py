"""Dev sets: what training scores at each evaluation, to log and to choose a checkpoint."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from cse_core.evaluation.geometry import measure
from cse_core.evaluation.pairs import PairSet, read_pairs
from cse_core.evaluation.sts import spearman
from cse_core.evaluation.vectors import Encode, EncodedTexts, row_cosines


@dataclass(frozen=True)
class DevSet:
    """A named set of graded pairs that training is scored on.

    Attributes:
        name: Prefix of its scores, ``stsb.dev``.
        pairs: The pairs.
    """

    name: str
    pairs: PairSet

    def score(self, encode: Encode) -> dict[str, float]:
        """Score an encoder.

        Returns:
            ``{name}.spearman`` (x100, all pairs together; 0 where all cosines are equal, so that
            a collapsed model is never chosen), ``{name}.alignment``, ``{name}.uniformity``,
            ``{name}.mean_cosine`` and ``{name}.effective_rank``; one that the pairs do not define
            (alignment without a pair above the threshold) is left out.

        Raises:
            CseError: If the encoder's vectors are not finite.
        """
        encoded = EncodedTexts(encode, self.pairs.texts)
        first, second = encoded.pair_vectors(self.pairs)
        geometry = measure(self.pairs, first, second, encoded.unit(self.pairs.texts))
        correlation = spearman(
            [pair.score for pair in self.pairs.pairs], row_cosines(first, second)
        )
        scores = {
            "spearman": 0.0 if correlation is None else correlation,
            "alignment": geometry.alignment,
            "uniformity": geometry.uniformity,
            "mean_cosine": geometry.mean_cosine,
            "effective_rank": geometry.effective_rank,
        }
        return {
            f"{self.name}.{score}": value for score, value in scores.items() if value is not None
        }


def name_dev_sets(sets: Sequence[PairSet]) -> list[DevSet]:
    """Name sets by their files; of equal names the second becomes ``name-2``."""
    named: dict[str, DevSet] = {}
    for pairs in sets:
        name, count = pairs.name, 1
        while name in named:
            count += 1
            name = f"{pairs.name}-{count}"
        named[name] = DevSet(name, pairs)
    return list(named.values())


def read_dev_sets(paths: Sequence[str | os.PathLike[str]]) -> list[DevSet]:
    """Read pair files as dev sets.

    Raises:
        CseError: If a file is no pair file.
    """
    return name_dev_sets([read_pairs(path) for path in paths])
