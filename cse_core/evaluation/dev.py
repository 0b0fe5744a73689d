"""Dev sets: what training scores at each evaluation, to log and to choose a checkpoint."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from cse_core.evaluation.documents import DocumentSet, is_document_file, read_documents
from cse_core.evaluation.geometry import effective_rank, mean_cosine, measure, singular_values
from cse_core.evaluation.pairs import PairSet, is_binary, read_pairs, spearman
from cse_core.evaluation.retrieval import CUTS, document_vectors, recall_at
from cse_core.evaluation.vectors import Encode, EncodedTexts, row_cosines, unit

_SAMPLE = 1000
"""Documents whose vectors are looked at for a collapse."""


@dataclass(frozen=True)
class DevSet:
    """Graded pairs that training is scored on; ``name`` is the prefix of its scores."""

    name: str
    pairs: PairSet

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the scores that may choose a checkpoint, the usual one first."""
        binary = is_binary(pair.score for pair in self.pairs.pairs)
        return ("spearman", "average_precision") if binary else ("spearman",)

    @property
    def size(self) -> int:
        """Return how many texts it has."""
        return len(self.pairs.texts)

    def score(self, encode: Encode) -> dict[str, float]:
        """Score an encoder.

        Returns:
            ``{name}.spearman`` (x100, all pairs together; 0 where all cosines are equal, so that
            a collapsed model is never chosen), ``{name}.alignment``, ``{name}.uniformity``,
            ``{name}.mean_cosine``, ``{name}.effective_rank`` and of pairs labelled 0 and 1
            ``{name}.average_precision``; one that the pairs do not define (alignment without a
            pair above the threshold) is left out.

        Raises:
            CseError: If the encoder's vectors are not finite.
        """
        encoded = EncodedTexts(encode, self.pairs.texts)
        first, second = encoded.pair_vectors(self.pairs)
        geometry = measure(self.pairs, first, second, encoded.unit(self.pairs.texts))
        gold = [pair.score for pair in self.pairs.pairs]
        cosines = row_cosines(first, second)
        correlation = spearman(gold, cosines)
        precision = None
        if is_binary(gold):
            from sklearn.metrics import average_precision_score

            precision = 100.0 * float(average_precision_score(gold, cosines))
        return _named(
            self.name,
            spearman=0.0 if correlation is None else correlation,
            average_precision=precision,
            alignment=geometry.alignment,
            uniformity=geometry.uniformity,
            mean_cosine=geometry.mean_cosine,
            effective_rank=geometry.effective_rank,
        )


@dataclass(frozen=True)
class DocumentDevSet:
    """Documents with titles that training is scored on; ``name`` is the prefix of its scores."""

    name: str
    documents: DocumentSet

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the scores that may choose a checkpoint, the usual one first."""
        return tuple(f"recall@{k}" for k in CUTS)

    @property
    def size(self) -> int:
        """Return how many documents it has."""
        return len(self.documents)

    def score(self, encode: Encode) -> dict[str, float]:
        """Score an encoder.

        Returns:
            ``{name}.recall@5``, ``@10`` and ``@20`` (x100), and ``{name}.mean_cosine`` and
            ``{name}.effective_rank`` of the first documents' vectors.

        Raises:
            CseError: If the encoder's vectors are not finite.
        """
        vectors = unit(document_vectors(encode, self.documents))
        titles = EncodedTexts(encode, self.documents.titles).unit(self.documents.titles)
        recall = recall_at(vectors, titles, self.documents.gold)
        some = vectors[:_SAMPLE]
        return _named(
            self.name,
            **{f"recall@{k}": value for k, value in recall.items()},
            mean_cosine=mean_cosine(some),
            effective_rank=effective_rank(singular_values(some)),
        )


def _named(name: str, **scores: float | None) -> dict[str, float]:
    return {f"{name}.{score}": value for score, value in scores.items() if value is not None}


AnyDevSet = DevSet | DocumentDevSet


def name_dev_sets(sets: Iterable[PairSet | DocumentSet]) -> list[AnyDevSet]:
    """Name sets by their files; of equal names the second becomes ``name-2``."""
    named: dict[str, AnyDevSet] = {}
    for read in sets:
        name, count = read.name, 1
        while name in named:
            count += 1
            name = f"{read.name}-{count}"
        if isinstance(read, PairSet):
            named[name] = DevSet(name, read)
        else:
            named[name] = DocumentDevSet(name, read)
    return list(named.values())


def read_dev_set(path: str | os.PathLike[str]) -> PairSet | DocumentSet:
    """Read a file of graded pairs, or of documents with titles.

    Raises:
        CseError: If it is neither.
    """
    return read_documents(path) if is_document_file(path) else read_pairs(path)
