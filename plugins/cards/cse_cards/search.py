"""Exact nearest neighbours among many vectors, in chunks."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

QUERIES, BLOCK = 2048, 16384
"""Vectors that are searched for, and searched, at once: 128 MiB of scores."""
IN_MEMORY = 2**30
"""Bytes of vectors beyond which they lie in a file that is mapped into memory."""
Progress = Callable[[int, int], None]


@contextmanager
def room(rows: int, dimension: int, limit: int = IN_MEMORY) -> Iterator[Tensor]:
    """Give room for ``[rows, dimension]`` float32 vectors: memory, or a temporary file beyond it.

    Args:
        rows: How many.
        dimension: Of each.
        limit: Bytes that may be in memory.
    """
    if rows * dimension * 4 <= limit:
        yield torch.empty(rows, dimension)
        return
    with tempfile.TemporaryDirectory(prefix="cse-vectors-") as folder:
        size = rows * dimension
        flat = torch.from_file(str(Path(folder) / "vectors"), shared=True, size=size)
        yield flat.view(rows, dimension)


@torch.no_grad()
def nearest(
    vectors: Tensor,
    count: int,
    *,
    device: torch.device,
    progress: Progress | None = None,
    queries: int = QUERIES,
    block: int = BLOCK,
    part: tuple[int, int] | None = None,
) -> Tensor:
    """Return the vectors most similar to each vector, itself left out, the most similar first.

    Every pair is compared. No more than ``queries * block`` similarities are held at once.

    Args:
        vectors: ``[N, D]`` of length one, on the CPU.
        count: How many of each; at most N - 1.
        device: Where similarities are computed.
        progress: Hears how many vectors are done, of how many.
        queries: Vectors that are searched for at once.
        block: Vectors that are searched at once.
        part: Where the vectors that are searched for begin and end; by default all are.

    Returns:
        ``[N, count]`` int32 rows of ``vectors``, on the CPU.
    """
    rows = len(vectors)
    begin, end = part or (0, rows)
    found = torch.empty(end - begin, count, dtype=torch.int32)
    there = vectors.to(device) if _fits(vectors, device) else vectors
    for first in range(begin, end, queries):
        last = min(first + queries, end)
        wanted = there[first:last].to(device)
        best = torch.empty(len(wanted), 0, device=device)
        who = torch.empty(len(wanted), 0, dtype=torch.long, device=device)
        for start in range(0, rows, block):
            stop = min(start + block, rows)
            scores = wanted @ there[start:stop].to(device).T
            low, high = max(first, start), min(last, stop)
            if low < high:
                own = torch.arange(low, high, device=device)
                scores[own - first, own - start] = -torch.inf
            top, place = scores.topk(min(count, stop - start), dim=1)
            best, who = torch.cat([best, top], dim=1), torch.cat([who, place + start], dim=1)
            if best.shape[1] > count:
                best, order = best.topk(count, dim=1)
                who = who.gather(1, order)
        found[first - begin : last - begin] = who.to("cpu", torch.int32)
        if progress is not None:
            progress(last - begin, end - begin)
    return found


def _fits(vectors: Tensor, device: torch.device) -> bool:
    """Tell whether all vectors may lie on a GPU, with as much room beside them."""
    if device.type != "cuda":
        return False
    free, _ = torch.cuda.mem_get_info(device)
    return 2 * vectors.nbytes < free
