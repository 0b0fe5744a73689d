"""The graph of each document's sentences, and its connected components."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch.nn.functional import normalize

from cse_infocse.documents import Documents, Ints

_CELLS = 4_000_000
"""Similarities that are computed at once."""


def nearest_edges(
    vectors: Tensor, documents: Documents, neighbours: int, similarity: str = "dot"
) -> tuple[Ints, Ints]:
    """Return edges from each sentence to its nearest ones in its document, ``[E]`` and ``[E]``.

    A sentence is never its own neighbour, though its inner product with itself is mostly the
    largest; of equally near ones the first in the document is taken. Documents of like length are
    computed together, as ``[documents, L, L]``.

    Args:
        vectors: ``[S, D]`` of the documents' sentences.
        documents: Which sentence belongs to which document.
        neighbours: Edges of a sentence (K); fewer where the document is shorter.
        similarity: ``dot`` or ``cosine``.
    """
    if similarity == "cosine":
        vectors = normalize(vectors, dim=1)
    lengths = documents.lengths
    order = np.argsort(lengths, kind="stable")
    none = torch.zeros(0, dtype=torch.long)
    sources, targets = [none], [none]
    start = 0
    while start < len(order):
        stop = _group(lengths[order], start)
        chosen = torch.from_numpy(order[start:stop])
        first = torch.from_numpy(documents.offsets[:-1])[chosen]
        for source, target in _nearest(
            vectors, first, torch.from_numpy(lengths)[chosen], neighbours
        ):
            sources.append(source)
            targets.append(target)
        start = stop
    return torch.cat(sources).numpy(), torch.cat(targets).numpy()


def _group(lengths: Ints, start: int) -> int:
    """Return the end of the group of documents that starts at ``start``.

    Lengths ascend; the padded similarities stay within bounds and at most about half is padding.
    """
    longest = int(np.searchsorted(lengths, max(1.4 * lengths[start], 8), side="right"))
    count = np.arange(1, longest - start + 1)
    fits = count * lengths[start:longest] ** 2 <= _CELLS
    return start + max(int(fits.sum()), 1)


def _nearest(
    vectors: Tensor, first: Tensor, lengths: Tensor, neighbours: int
) -> list[tuple[Tensor, Tensor]]:
    longest = int(lengths.max())
    place = torch.arange(longest)
    inside = place < lengths.unsqueeze(1)  # [B, L]
    index = first.unsqueeze(1) + torch.where(inside, place, 0)
    padded = vectors[index]  # [B, L, D]
    rows = max(_CELLS // (longest * len(first)), 1)
    edges = []
    for begin in range(0, longest, rows):
        end = min(begin + rows, longest)
        near = padded[:, begin:end] @ padded.transpose(1, 2)  # [B, l, L]
        hidden = ~inside.unsqueeze(1) | (place == place[begin:end].unsqueeze(1))
        near.masked_fill_(hidden, -torch.inf)
        valid = inside[:, begin:end]
        for _ in range(min(neighbours, longest - 1)):
            best, at = near.max(dim=2, keepdim=True)
            # The first of equal values: what ``max`` returns of several is not promised.
            at = torch.where(near == best, place, longest - 1).amin(dim=2, keepdim=True)
            real = valid & best.squeeze(2).isfinite()
            edges.append((index[:, begin:end][real], (first.view(-1, 1, 1) + at).squeeze(2)[real]))
            near.scatter_(2, at, -torch.inf)
    return edges


def components(source: Ints, target: Ints, count: int) -> Ints:
    """Return ``[count]`` the lowest sentence of each sentence's component.

    An edge joins both its ends, whichever of the two it comes from (the union of the top-K).
    """
    ones = np.ones(len(source), dtype=np.int8)
    graph = coo_array((ones, (source, target)), shape=(count, count)).tocsr()
    _, label = connected_components(graph, directed=False)
    return canonical(label.astype(np.int64))


def canonical(labels: Ints) -> Ints:
    """Return ``[S]`` the lowest index that has an item's label."""
    _, first, place = np.unique(labels, return_index=True, return_inverse=True)
    return first.astype(np.int64)[place]
