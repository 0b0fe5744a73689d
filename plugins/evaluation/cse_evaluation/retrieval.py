"""Retrieval: the title of each document among all candidates, by the mean of its sentences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cse import unit, units_of
from cse_core.suites import DevSet, Encode, Progress
from cse_evaluation.documents import DocumentSet
from cse_evaluation.geometry import spread_of
from cse_evaluation.results import Baseline, Result, rounded
from cse_evaluation.vectors import EncodedTexts

CUTS = (5, 10, 20)
"""The k of recall@k."""
_EQUAL = 1e-9
"""Similarities that differ by no more are equal: sums of floats differ by their order."""
_SENTENCES, _DOCUMENTS, _CELLS = 8192, 512, 2**24
_SAMPLE = 1000
"""Documents of a dev set whose vectors are looked at for a collapse."""


def document_vectors(
    encode: Encode, documents: DocumentSet, progress: Progress | None = None
) -> NDArray[np.float64]:
    """Return the mean of each document's sentence vectors, ``[N, D]``.

    Some thousand sentences are held at a time. The vectors are averaged as they are, not scaled to
    length 1 first.
    """
    means: NDArray[np.float64] | None = None
    done = 0
    for texts, document in documents.blocks(_SENTENCES):
        vectors = EncodedTexts(encode, texts)(texts).astype(np.float64)
        if means is None:
            means = np.zeros((len(documents), vectors.shape[1]))
        first, last = int(document[0]), int(document[-1]) + 1
        starts = np.flatnonzero(np.diff(document, prepend=-1))
        lengths = np.diff(documents.offsets[first : last + 1])
        means[first:last] = np.add.reduceat(vectors, starts, axis=0) / lengths[:, None]
        done += len(texts)
        if progress is not None:
            progress(done, len(documents.rows), f"sentences of {documents.name}")
    return np.zeros((0, 0)) if means is None else means


def recall_of(before: NDArray[np.int64]) -> dict[str, float]:
    """Return recall@k x100 for each k of ``CUTS``, of what ``titles_before`` returned."""
    return {f"recall@{k}": 100 * float((before < k).mean()) for k in CUTS}


def titles_before(
    documents: NDArray[np.float64], titles: NDArray[np.float64], gold: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Count the titles that rank before the title of each document, ``[N]``.

    A title that is as similar as the document's own counts as before it, so a model that gives all
    texts one vector finds nothing.

    Args:
        documents: ``[N, D]`` vectors whose inner products rank titles, dense or sparse rows.
        titles: ``[M, D]`` the same of the titles.
        gold: ``[N]`` which title is the document's.
    """
    before = np.empty(len(gold), dtype=np.int64)
    count = min(_DOCUMENTS, max(1, _CELLS // max(1, titles.shape[0])))
    for start in range(0, len(gold), count):
        rows = slice(start, start + count)
        scores: Any = documents[rows] @ titles.T
        scores = scores if isinstance(scores, np.ndarray) else scores.toarray()
        right = scores[np.arange(len(scores)), gold[rows]]
        before[rows] = (scores >= right[:, None] - _EQUAL).sum(axis=1) - 1
    return before


@dataclass(frozen=True)
class DocumentDevSet(DevSet):
    """Documents with titles that training is scored on."""

    documents: DocumentSet

    @classmethod
    def of(cls, documents: DocumentSet) -> DocumentDevSet:
        """Return the dev set of a file of documents."""
        choices = tuple(f"recall@{k}" for k in CUTS)
        return cls(documents.name, choices, len(documents), documents)

    def scored_texts(self) -> Iterable[str]:
        """List the sentences of the documents."""
        return self.documents.sentences

    def score(self, encode: Encode) -> dict[str, float]:
        """Score an encoder.

        Returns:
            ``recall@5``, ``@10`` and ``@20`` (x100), and ``mean_cosine`` and ``effective_rank`` of
            the first documents' vectors.
        """
        vectors = unit(document_vectors(encode, self.documents))
        titles = EncodedTexts(encode, self.documents.titles).unit(self.documents.titles)
        scores = recall_of(titles_before(vectors, titles, self.documents.gold))
        return scores | spread_of(vectors[:_SAMPLE])


def score_documents(
    encode: Encode,
    documents: DocumentSet,
    words: Baseline | None = None,
    progress: Progress | None = None,
) -> Result:
    """Score an encoder on a set of documents; the items are what ``titles_before`` returns.

    ``words`` is what ``score_words`` returned for them.
    """
    vectors = unit(document_vectors(encode, documents, progress))
    titles = EncodedTexts(encode, documents.titles).unit(documents.titles)
    facts: dict[str, Any] = {
        "documents": len(documents),
        "titles": len(documents.titles),
        "sentences": len(documents.rows),
        "untitled": documents.untitled,
        "fingerprint": documents.fingerprint,
    }
    before = titles_before(vectors, titles, documents.gold)
    return Result.of(
        documents.name,
        recall_of(before),
        facts,
        split=documents.name.rpartition(".")[2],
        setting="document to title, mean of sentence vectors, cosine",
        words=words,
        items=before,
    )


def score_words(documents: DocumentSet) -> Baseline:
    """Return the recall of TF-IDF, and what it counted.

    Counts of words times log((N + 1) / (df + 1)) + 1 over the N documents, scaled to length 1, of a
    document's sentences together and of titles.
    """
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import TfidfVectorizer

    units, named = units_of(documents.titles)
    whole = [
        " ".join(documents.sentences.take(documents.rows[begin:end]))
        for begin, end in zip(documents.offsets[:-1], documents.offsets[1:], strict=True)
    ]
    weigh = TfidfVectorizer(analyzer=lambda text: units(text) or [""])
    rows = csr_array(weigh.fit_transform(whole))
    titles = csr_array(weigh.transform(documents.titles))
    before = titles_before(rows, titles, documents.gold)  # type: ignore[arg-type]
    lexical = {"idf": "the documents", "units": named}
    return {"tfidf": rounded(recall_of(before)), "lexical": lexical}
