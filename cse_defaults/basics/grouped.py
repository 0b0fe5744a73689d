"""Batches of one group, whose in-batch negatives are then of it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from cse_core.parts import Sampler
from cse_core.protocols import Rows
from cse_defaults.basics.options import GroupedOptions


class Grouped(Sampler):
    """Orders each epoch so that a batch has rows of one group.

    Rows of a group are shuffled and cut into batches, and these are shuffled. What is left of each
    group, fewer than a batch, comes last and is mixed.
    """

    options: GroupedOptions

    def order(
        self, rows: Rows, size: int, draws: Callable[[str], torch.Generator]
    ) -> Tensor | None:
        """Put whole batches of one group first: ``[rows]``; None where no group fills a batch."""
        group = rows.values(self.options.column, "label")
        shuffled = torch.randperm(len(rows), generator=draws("rows"))
        order = shuffled[torch.argsort(group[shuffled], stable=True)]
        counts = torch.unique_consecutive(group[order], return_counts=True)[1]
        batches, rest = [], []
        for part in torch.split(order, counts.tolist()):
            full = len(part) // size * size
            batches += list(torch.split(part[:full], size)) if full else []
            rest.append(part[full:])
        if not batches:
            return None
        mixed = torch.cat(rest)
        places = torch.randperm(len(batches), generator=draws("batches")).tolist()
        mixed = mixed[torch.randperm(len(mixed), generator=draws("rest"))]
        return torch.cat([*(batches[place] for place in places), mixed])
