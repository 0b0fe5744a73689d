"""Negative segments that count by text, not by segment."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from cse_core.parts import NegativeStore
from cse_core.types import Batch, Negatives, StepContext
from cse_hicl.options import AveragingOptions


class Averaging(NegativeStore):
    """Weighs every negative segment of text k by ``1 / l_k``, k's number of segments.

    HiCL, Appendix A.8, Table 16: the average over a text's segments stands in the denominator
    instead of their sum. It holds nothing and brings no negatives of its own. Segments of one text
    are those of equal corpus row and age in one block; what came from no row counts alone.
    """

    options: AveragingOptions

    def weigh(self, negatives: Negatives, batch: Batch, ctx: StepContext) -> Negatives:
        """Return the negatives with ``-log l_k`` added to their weights."""
        logs, start = [], 0
        for _, size in negatives.blocks:
            block = slice(start, start + size)
            logs.append(segments_of_text(negatives.row[block], negatives.age[block]))
            start += size
        if not start:
            return negatives
        away = torch.cat(logs).to(negatives.log_weights.dtype).log()
        return replace(negatives, log_weights=negatives.log_weights - away)


def segments_of_text(row: Tensor, age: Tensor) -> Tensor:
    """Return ``[N]`` how many columns have a column's row and age; 1 where it has no row."""
    if not len(row):
        return row
    key = row * (age.max() + 1) + age
    ordered = torch.sort(key).values
    count = torch.searchsorted(ordered, key, right=True) - torch.searchsorted(ordered, key)
    return torch.where(row >= 0, count, torch.ones_like(count))
