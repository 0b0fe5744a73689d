"""Pairs of sentences that share a cluster, capped per document and per round."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from cse_core.protocols import Corpus
from cse_infocse.documents import Documents, Ints

Draw = Callable[[int], NDArray[np.float64]]
"""From a number to so many uniform numbers in ``[0, 1)``."""


def uniform(generator: torch.Generator) -> Draw:
    """Return a function that draws uniform numbers, one after the other."""
    return lambda count: torch.rand(count, generator=generator, dtype=torch.float64).numpy()


def cluster_pairs(
    cluster: Ints, documents: Documents, most: int | None, draw: Draw
) -> tuple[Ints, Ints]:
    """Return all unordered pairs of sentences in one cluster, ``[P]`` and ``[P]``, i before j.

    A document of more than ``most`` pairs gives every n-th of them from a drawn place on, so that
    each is as likely as any other and large clusters cost no memory.

    Args:
        cluster: ``[S]`` lowest sentence of each sentence's cluster; clusters lie in documents.
        documents: Which sentence belongs to which document.
        most: Pairs of a document at most.
        draw: Draws a place for each document.
    """
    order = np.argsort(cluster, kind="stable")
    firsts, sizes = np.unique(cluster, return_counts=True)
    begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    counts = sizes * (sizes - 1) // 2
    ends = np.cumsum(counts)
    of_document = np.bincount(
        documents.document[firsts], weights=counts, minlength=len(documents)
    ).astype(np.int64)
    number = _spread(of_document, most, draw)
    at = np.searchsorted(ends, number, side="right")
    one, two = _unranked(number - (ends - counts)[at])
    return order[begins[at] + one], order[begins[at] + two]


def _spread(counts: Ints, most: int | None, draw: Draw) -> Ints:
    """Return numbers of the chosen items, where group k has ``counts[k]`` items, in order."""
    taken = counts if most is None else np.minimum(counts, most)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    group = np.repeat(np.arange(len(counts)), taken)
    place = np.arange(len(group)) - np.repeat(np.cumsum(taken) - taken, taken)
    step = counts / np.maximum(taken, 1)
    within = np.floor((place + draw(len(counts))[group]) * step[group]).astype(np.int64)
    whole = (taken == counts)[group]
    within = np.where(whole, place, np.minimum(within, counts[group] - 1))
    return starts[group] + within


def _unranked(number: Ints) -> tuple[Ints, Ints]:
    """Return pair number n of (0, 1), (0, 2), (1, 2), (0, 3), ..."""
    two = np.floor((1 + np.sqrt(1 + 8 * number.astype(np.float64))) / 2).astype(np.int64)
    two -= two * (two - 1) // 2 > number
    two += two * (two + 1) // 2 <= number
    return number - two * (two - 1) // 2, two


def evenly(documents: Ints, most: int | None, draw: Draw) -> Ints:
    """Return indexes of at most ``most`` candidates of each document, as ``cluster_pairs`` does.

    Args:
        documents: ``[C]`` document of each candidate, ascending from 0.
        most: Candidates of a document at most.
        draw: Draws a place for each document.
    """
    return _spread(np.bincount(documents).astype(np.int64), most, draw)


class PairCollector:
    """Gathers the pairs of a round, shard by shard, and keeps at most so many of them.

    Args:
        most: How many; None keeps all.
        draw: Draws which.
    """

    def __init__(self, most: int | None, draw: Draw) -> None:
        self.most = most
        self.draw = draw
        self._columns: list[Ints] = []
        self._keys: list[NDArray[np.float64]] = []
        self._held = 0

    def add(self, *columns: Ints) -> None:
        """Add pairs: columns ``[P]`` of corpus rows."""
        self._columns.append(np.stack(columns))
        self._keys.append(self.draw(len(columns[0])))
        self._held += len(columns[0])
        if self.most is not None and self._held > 2 * self.most:
            self._keep(*self._joined())

    def distinct(self, corpus: Corpus) -> Ints:
        """Return ``[columns, P]``; of pairs with the same two texts the first one stays."""
        pairs, keys = self._joined()
        texts = np.sort(corpus.text_ids[pairs[:2]], axis=0)
        _, first = np.unique(texts[0] * len(corpus) + texts[1], return_index=True)
        first = np.sort(first[texts[0][first] != texts[1][first]])
        self._keep(pairs[:, first], keys[first])
        return self._joined()[0]

    def _joined(self) -> tuple[Ints, NDArray[np.float64]]:
        return np.concatenate(self._columns, axis=1), np.concatenate(self._keys)

    def _keep(self, pairs: Ints, keys: NDArray[np.float64]) -> None:
        if self.most is not None and len(keys) > self.most:
            chosen = np.sort(np.argpartition(keys, self.most)[: self.most])
            pairs, keys = pairs[:, chosen], keys[chosen]
        self._columns, self._keys, self._held = [pairs], [keys], len(keys)
