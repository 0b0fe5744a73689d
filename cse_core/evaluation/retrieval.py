"""Retrieval: the title of each document among all titles, by the mean of its sentences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cse_core.evaluation.documents import DocumentSet
from cse_core.evaluation.suites import Progress
from cse_core.evaluation.vectors import Encode, EncodedTexts

CUTS = (5, 10, 20)
"""The k of recall@k."""
_SENTENCES, _DOCUMENTS = 8192, 512
Recall = dict[int, float]


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
        vectors = EncodedTexts(encode, texts).raw(texts).astype(np.float64)
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


def recall_at(
    documents: NDArray[np.float64], titles: NDArray[np.float64], gold: NDArray[np.int64]
) -> Recall:
    """Return recall@k x100 for each k of ``CUTS``.

    A title that is as similar as the document's own counts as before it, so a model that gives all
    texts one vector finds nothing.

    Args:
        documents: ``[N, D]`` unit vectors, dense or sparse rows.
        titles: ``[M, D]`` the same of the titles.
        gold: ``[N]`` which title is the document's.
    """
    before = np.empty(len(gold), dtype=np.int64)
    for start in range(0, len(gold), _DOCUMENTS):
        rows = slice(start, start + _DOCUMENTS)
        scores: Any = documents[rows] @ titles.T
        scores = scores if isinstance(scores, np.ndarray) else scores.toarray()
        own = scores[np.arange(len(scores)), gold[rows]]
        before[rows] = (scores >= own[:, None]).sum(axis=1) - 1
    return {k: 100 * float((before < k).mean()) for k in CUTS}
