"""Nearest neighbours among many vectors: exact, or through faiss with its recall measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, get_args

from cse_core.errors import CseError, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from torch import Tensor

    Vectors = NDArray[np.float32]
    Ints = NDArray[np.int64]

Index = Literal["auto", "exact", "faiss"]
QUERIES, BLOCK = 2048, 16384
"""Vectors that are searched for, and searched, at once: 128 MiB of scores."""
MANY = 1_000_000
"""Vectors up to which ``auto`` compares with all of them."""
SAMPLE = 256
"""Queries of which the recall is measured; of so few ``auto`` finds the exact neighbours."""
ENOUGH = 0.95
"""Recall up to which more lists are looked at."""
_TRAINED_ON = 64
"""Vectors of each list that its centre is fitted to."""


def chosen_index(index: str, vectors: int, queries: int, where: str) -> bool:
    """Return whether neighbours are found through faiss.

    Args:
        index: ``exact``, ``faiss``, or ``auto``: faiss where it is installed, there are more than
            ``MANY`` vectors and more than ``SAMPLE`` queries.
        vectors: How many are searched.
        queries: How many are searched for.
        where: What names the index, for errors.

    Raises:
        CseError: If it is unknown, or faiss is wanted and not installed.
    """
    if index not in get_args(Index):
        hint = did_you_mean(index, get_args(Index))
        raise CseError("unknown index", where=where, value=index, hint=hint)
    there = find_spec("faiss") is not None
    if index == "faiss" and not there:
        hint = "pip install faiss-cpu, or take exact"
        raise CseError("faiss is not installed", where=where, value=index, hint=hint)
    many = vectors > MANY and queries > SAMPLE
    return index == "faiss" or (index == "auto" and there and many)


@dataclass(frozen=True)
class IndexReport:
    """What an index is.

    Attributes:
        vectors: How many it holds.
        lists: Lists around centres that they lie in.
        looked_at: Lists of which a query is compared with all vectors.
        recall: Share of the exact nearest ``nearest`` of ``queries`` queries that it finds.
        megabytes: Memory that it takes.
        seconds: Time in which it was made and measured.
    """

    vectors: int
    lists: int
    looked_at: int
    nearest: int
    queries: int
    recall: float
    megabytes: float
    seconds: float

    def __str__(self) -> str:
        return (
            f"faiss: {self.vectors:,} vectors in {self.lists:,} lists, {self.looked_at:,} looked "
            f"at: finds {100 * self.recall:.1f} % of the exact nearest {self.nearest} (of "
            f"{self.queries:,} queries); {self.megabytes:,.0f} MB, made in {self.seconds:.0f} s"
        )


class FaissIndex:
    """Vectors in lists around centres (IVF), of which a query is compared with the nearest ones.

    Products are exact; what lies in a list that is not looked at is missed. More lists are looked
    at, twice as many each time, until a sample of queries finds ``ENOUGH`` of its exact nearest.

    Args:
        vectors: ``[N, D]`` whose inner products with queries count; held whole in memory.
        queries: ``[Q, D]`` what will be searched for; a sample of it is measured.
        count: Neighbours of a query.
        own: ``[Q]`` the vector of each query, which is not its own neighbour; None where there is
            none.
        seed: Of what is drawn: the sample, and the vectors that centres are fitted to.
    """

    def __init__(
        self,
        vectors: Vectors,
        queries: Vectors,
        count: int,
        own: Ints | None = None,
        seed: int = 0,
    ) -> None:
        import faiss
        import numpy as np
        import torch

        began = time.monotonic()
        rows, dimension = vectors.shape
        draw = np.random.default_rng(seed)
        lists = max(1, min(round(4 * rows**0.5), rows // 39))
        some = _drawn(draw, rows, _TRAINED_ON * lists)
        self._index: Any = faiss.IndexIVFFlat(
            faiss.IndexFlatIP(dimension), dimension, lists, faiss.METRIC_INNER_PRODUCT
        )
        self._index.cp.seed = seed + 1
        self._index.cp.min_points_per_centroid = 1  # else it prints a warning of few vectors
        self._index.train(np.ascontiguousarray(vectors[some]))
        for start in range(0, rows, 2**18):
            self._index.add(np.ascontiguousarray(vectors[start : start + 2**18]))
        asked = _drawn(draw, len(queries), SAMPLE)
        mine = None if own is None else own[asked]
        held, sample = torch.from_numpy(vectors), torch.from_numpy(queries[asked])
        left_out = None if mine is None else torch.from_numpy(mine)
        wanted = nearest(held, sample, count, left_out).numpy()
        self._index.nprobe, recall = 1, 0.0
        while True:
            _, found = self.search(queries[asked], count, mine)
            hits = sum(len(np.intersect1d(*pair)) for pair in zip(found, wanted, strict=True))
            recall = hits / max(1, wanted.size)
            if recall >= ENOUGH or self._index.nprobe >= lists:
                break
            self._index.nprobe = min(2 * self._index.nprobe, lists)
        self.report = IndexReport(
            rows,
            lists,
            int(self._index.nprobe),
            count,
            len(asked),
            round(recall, 4),
            round(((rows + lists) * dimension * 4 + rows * 8) / 1e6, 1),
            round(time.monotonic() - began, 1),
        )

    def search(self, queries: Vectors, count: int, own: Ints | None = None) -> tuple[Vectors, Ints]:
        """Return inner products and rows ``[Q, count]`` of the nearest, the nearest first.

        ``own`` as for the class; there are at least ``count`` vectors beside it.
        """
        import numpy as np

        asked = np.ascontiguousarray(queries, dtype=np.float32)
        usual, more = self._index.nprobe, count + (own is not None)
        scores, rows = self._index.search(asked, more)
        # Short lists may hold fewer: those queries look at more of them.
        while len(short := np.flatnonzero((rows < 0).any(axis=1))):
            self._index.nprobe = min(2 * self._index.nprobe, self._index.nlist)
            scores[short], rows[short] = self._index.search(asked[short], more)
        self._index.nprobe = usual
        if own is None:
            return scores, rows
        # Each query's own vector leaves; where it was not found, the last one does.
        order = np.argsort(rows == own[:, None], axis=1, kind="stable")[:, :count]
        order.sort(axis=1)
        return np.take_along_axis(scores, order, 1), np.take_along_axis(rows, order, 1)


def nearest(
    vectors: Tensor,
    queries: Tensor,
    count: int,
    own: Tensor | None = None,
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
        count: How many of each; at most N, or N - 1 with ``own``.
        own: ``[Q]`` the vector of each query, which is left out; None where there is none.
        device: Where inner products are computed.
        progress: Hears how many queries are done, of how many.
        at_once: Queries that are searched for at once.
        block: Vectors that are searched at once.

    Returns:
        ``[Q, count]`` int32 rows of ``vectors``, on the CPU.
    """
    import torch

    device = torch.device(device)
    there = vectors.to(device) if _fits(vectors, device) else vectors
    found = torch.empty(len(queries), count, dtype=torch.int32)
    for first in range(0, len(queries), at_once):
        wanted = queries[first : first + at_once].to(device)
        mine = None if own is None else own[first : first + at_once]
        best = torch.empty(len(wanted), 0, device=device)
        who = torch.empty(len(wanted), 0, dtype=torch.long, device=device)
        for start in range(0, len(vectors), block):
            scores = wanted @ there[start : start + block].to(device).T
            width = scores.shape[1]
            if mine is not None:
                inside = torch.nonzero((mine >= start) & (mine < start + width)).squeeze(1)
                scores[inside.to(device), (mine[inside] - start).to(device)] = -torch.inf
            top, place = scores.topk(min(count, width), dim=1)
            best, who = torch.cat([best, top], dim=1), torch.cat([who, place + start], dim=1)
            if best.shape[1] > count:
                best, order = best.topk(count, dim=1)
                who = who.gather(1, order)
        found[first : first + at_once] = who.to("cpu", torch.int32)
        if progress is not None:
            progress(first + len(wanted), len(queries))
    return found


def _fits(vectors: Tensor, device: torch.device) -> bool:
    """Tell whether all vectors may lie on a GPU, with as much room beside them."""
    import torch

    if device.type != "cuda":
        return False
    free, _ = torch.cuda.mem_get_info(device)
    return 2 * vectors.nbytes < free


def _drawn(draw: np.random.Generator, count: int, most: int) -> Ints:
    """Return at most ``most`` of ``count`` places, in order."""
    import numpy as np

    if count <= most:
        return np.arange(count)
    return np.sort(draw.choice(count, most, replace=False))
