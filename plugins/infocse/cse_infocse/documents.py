"""A corpus as documents, some thousand sentences at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cse_core.errors import CseError
from cse_core.protocols import Corpus

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Documents:
    """Documents of several distinct sentences.

    Attributes:
        rows: ``[S]`` corpus rows, document by document, each in the order of the corpus.
        offsets: ``[documents + 1]`` where each document begins.
    """

    rows: Ints
    offsets: Ints

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Ints:
        """Return ``[documents]`` how many sentences each has."""
        return np.diff(self.offsets)

    @property
    def document(self) -> Ints:
        """Return ``[S]`` which document each sentence belongs to, from 0."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def shards(self, size: int) -> Iterator[Documents]:
        """Yield whole documents of together at most ``size`` sentences, or a single longer one."""
        start = 0
        while start < len(self):
            end = int(self.offsets[start]) + size
            stop = max(int(np.searchsorted(self.offsets, end, side="right")) - 1, start + 1)
            span = slice(self.offsets[start], self.offsets[stop])
            yield Documents(self.rows[span], self.offsets[start : stop + 1] - self.offsets[start])
            start = stop


def documents_of(corpus: Corpus, where: str) -> Documents:
    """Return the documents of a corpus.

    A sentence that a document has twice counts once, at its first place; rows of no document and
    documents of one sentence are left out: they have no pair.

    Args:
        corpus: The rows.
        where: The part that asks, for the error.

    Raises:
        CseError: If no document has two sentences.
    """
    numbers = corpus.documents
    if numbers is None:
        raise _no_documents(where)
    rows = np.flatnonzero(numbers >= 0)
    order = np.lexsort((rows, corpus.text_ids[rows], numbers[rows]))
    same = numbers[rows][order], corpus.text_ids[rows][order]
    first = np.ones(len(rows), dtype=bool)
    first[1:] = (same[0][1:] != same[0][:-1]) | (same[1][1:] != same[1][:-1])
    rows = np.sort(rows[order][first])
    rows = rows[np.argsort(numbers[rows], kind="stable")]
    _, counts = np.unique(numbers[rows], return_counts=True)
    rows = rows[np.repeat(counts, counts) > 1]
    counts = counts[counts > 1]
    if not len(counts):
        raise _no_documents(where)
    return Documents(rows, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))


def _no_documents(where: str) -> CseError:
    return CseError(
        "no document of the data has two sentences that differ",
        where=where,
        hint="name data with documents (articles, or a column document), one sentence a row",
    )
