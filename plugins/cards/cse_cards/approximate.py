"""Nearest neighbours among many vectors: exact, or through faiss with its recall measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cse_core.errors import CseError

Vectors = NDArray[np.float32]
Ints = NDArray[np.int64]
QUERIES, BLOCK = 2048, 16384
"""Vectors that are searched for, and searched, at once: 128 MiB of scores."""
MANY = 1_000_000
"""Vectors up to which ``auto`` compares with all of them."""
SAMPLE = 256
"""Queries of which the recall is measured."""
ENOUGH = 0.95
"""Recall up to which more lists are looked at."""
_TRAINED_ON = 64
"""Vectors of each list that its centre is fitted to."""


def through_faiss(index: str, vectors: int, where: str) -> bool:
    """Decide whether to search the neighbours of so many vectors with faiss.

    ``auto`` takes it where it is installed and there are more than ``MANY`` vectors.

    Raises:
        CseError: If faiss is wanted and not installed.
    """
    installed = find_spec("faiss") is not None
    if index == "faiss" and not installed:
        hint = "pip install faiss-cpu, or take exact"
        raise CseError("faiss is not installed", where=where, value=index, hint=hint)
    return index == "faiss" or (index == "auto" and installed and vectors > MANY)


class FaissIndex:
    """Vectors in lists around centres (IVF), of which a query is compared with the nearest ones.

    Products are exact; what lies in a list that is not looked at is missed. More lists are looked
    at, twice as many each time, until a sample of queries finds ``ENOUGH`` of its exact nearest.

    Args:
        vectors: ``[N, D]`` whose inner products count, each a query too; held whole in memory.
        count: Neighbours of a query, itself left out.

    Attributes:
        recall: Share of the exact nearest of the sample that it finds.
        report: What it is, in words: its size, its recall and the time that it took.
    """

    def __init__(self, vectors: Vectors, count: int) -> None:
        import faiss

        began = time.monotonic()
        rows, dimension = vectors.shape
        draw = np.random.default_rng(0)
        lists = max(1, min(round(4 * rows**0.5), rows // 39))
        some = _drawn(draw, rows, _TRAINED_ON * lists)
        self._index: Any = faiss.IndexIVFFlat(
            faiss.IndexFlatIP(dimension), dimension, lists, faiss.METRIC_INNER_PRODUCT
        )
        self._index.cp.seed = 1
        self._index.cp.min_points_per_centroid = 1  # else it prints a warning of few vectors
        self._index.train(np.ascontiguousarray(vectors[some]))
        for start in range(0, rows, 2**18):
            self._index.add(np.ascontiguousarray(vectors[start : start + 2**18]))
        sample = _drawn(draw, rows, SAMPLE)
        matrix = torch.from_numpy(vectors)
        wanted = nearest(matrix, matrix[sample], count, torch.from_numpy(sample)).numpy()
        self._index.nprobe = 1
        while True:
            result = self.search(vectors[sample], count, sample)
            hits = sum(len(np.intersect1d(*pair)) for pair in zip(result, wanted, strict=True))
            self.recall = hits / max(1, wanted.size)
            if self.recall >= ENOUGH or self._index.nprobe >= lists:
                break
            self._index.nprobe = min(2 * self._index.nprobe, lists)
        size = (rows + lists) * dimension * 4 + rows * 8
        self.report = (
            f"faiss: {rows:,} vectors in {lists:,} lists, {self._index.nprobe:,} looked at: finds "
            f"{100 * self.recall:.1f} % of the exact nearest {count} (of {len(sample):,} queries); "
            f"{size / 1e6:,.0f} MB, made in {time.monotonic() - began:.0f} s"
        )

    def search(self, queries: Vectors, count: int, own: Ints) -> Ints:
        """Return rows ``[Q, count]`` of the nearest, the nearest first, without the query itself.

        ``own`` ``[Q]`` says which vector that is; there are at least ``count`` others.
        """
        asked = np.ascontiguousarray(queries, dtype=np.float32)
        usual = self._index.nprobe
        _, rows = self._index.search(asked, count + 1)
        # Short lists may hold fewer: those queries look at more of them.
        while len(short := np.flatnonzero((rows < 0).any(axis=1))):
            self._index.nprobe = min(2 * self._index.nprobe, self._index.nlist)
            _, rows[short] = self._index.search(asked[short], count + 1)
        self._index.nprobe = usual
        # Each query's own vector leaves; where it was not found, the last one does.
        order = np.argsort(rows == own[:, None], axis=1, kind="stable")[:, :count]
        order.sort(axis=1)
        return np.take_along_axis(rows, order, 1)


def nearest(
    vectors: Tensor,
    queries: Tensor,
    count: int,
    own: Tensor,
    *,
    device: torch.device | str = "cpu",
    progress: Callable[[int, int], None] | None = None,
    at_once: int = QUERIES,
    block: int = BLOCK,
) -> Tensor:
    """Return the vectors of the largest inner product with each query, the largest first.

    Args:
        vectors: ``[N, D]`` on the CPU.
        queries: ``[Q, D]`` on the CPU.
        count: How many of each; at most N - 1.
        own: ``[Q]`` the vector of each query, which is left out.
        device: Where inner products are computed.
        progress: Hears how many queries are done, of how many.
        at_once: Queries that are searched for at once.
        block: Vectors that are searched at once.

    Returns:
        ``[Q, count]`` int32 rows of ``vectors``, on the CPU.
    """
    device = torch.device(device)
    matrix = vectors.to(device) if _fits(vectors, device) else vectors
    result = torch.empty(len(queries), count, dtype=torch.int32)
    for first in range(0, len(queries), at_once):
        wanted = queries[first : first + at_once].to(device)
        mine = own[first : first + at_once]
        best = torch.empty(len(wanted), 0, device=device)
        who = torch.empty(len(wanted), 0, dtype=torch.long, device=device)
        for start in range(0, len(vectors), block):
            scores = wanted @ matrix[start : start + block].to(device).T
            width = scores.shape[1]
            inside = torch.nonzero((mine >= start) & (mine < start + width)).squeeze(1)
            scores[inside.to(device), (mine[inside] - start).to(device)] = -torch.inf
            top, place = scores.topk(min(count, width), dim=1)
            best, who = torch.cat([best, top], dim=1), torch.cat([who, place + start], dim=1)
            if best.shape[1] > count:
                best, order = best.topk(count, dim=1)
                who = who.gather(1, order)
        result[first : first + at_once] = who.to("cpu", torch.int32)
        if progress is not None:
            progress(first + len(wanted), len(queries))
    return result


def _fits(vectors: Tensor, device: torch.device) -> bool:
    """Check whether all vectors may lie on a GPU, with as much room beside them."""
    if device.type != "cuda":
        return False
    free, _ = torch.cuda.mem_get_info(device)
    return 2 * vectors.nbytes < free


def _drawn(draw: np.random.Generator, count: int, most: int) -> Ints:
    """Return at most ``most`` of ``count`` places, in order."""
    if count <= most:
        return np.arange(count)
    return np.sort(draw.choice(count, most, replace=False))
