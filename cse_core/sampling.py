"""Some of the items of each row, drawn without replacement and without a loop over rows."""

from __future__ import annotations

import torch
from torch import Tensor


def sample_in_rows(
    row: Tensor, count: Tensor, draws: Tensor, among: Tensor | None = None
) -> Tensor:
    """Return ``[T]`` bool: ``count[r]`` of the items of each row r, those of the least draws.

    No GPU has to be waited for.

    Args:
        row: ``[T]`` int64, the row of each item, in order.
        count: ``[R]`` int64, how many of each row; all of a row that has fewer.
        draws: ``[T]`` independent uniform numbers in [0, 1).
        among: ``[T]`` bool, items that may be taken; None is all.
    """
    # One key of whole numbers, row first: a single sort, on devices without float64 too.
    drawn = (draws * 2**31).long()
    if among is not None:
        drawn = drawn.masked_fill(~among, 2**31)
    order = torch.argsort((row << 32) + drawn, stable=True)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(row), device=row.device)
    first = torch.searchsorted(row, torch.arange(len(count), device=row.device))
    taken = place < (first + count)[row]
    return taken if among is None else taken & among
