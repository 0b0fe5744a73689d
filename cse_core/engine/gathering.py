"""The vectors of a step over all processes, in one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import torch

from cse_core.engine.row_keys import KeysOnDevice, RowKeys
from cse_core.runtime import distributed
from cse_core.types import Embeddings

Name = TypeVar("Name")


class Gathering:
    """Gathers vectors in rank order, with gradient for one's own.

    Args:
        batch: Rows of the batch over all processes.
        row_each: Whether a view has one row for each of them, in their order. Every process then
            knows the rows of all; else how many there are is asked for first.
        on_device: Puts row keys where tensors belong.
    """

    def __init__(self, batch: int, row_each: bool, on_device: KeysOnDevice) -> None:
        self.rank, self.size = distributed.rank_and_size()
        shares = [distributed.share(batch, rank, self.size) for rank in range(self.size)]
        self._counts = [stop - start for start, stop in shares] if row_each else None
        if self.size > 1 and row_each:
            self._keys = on_device.of(torch.arange(batch), torch.zeros(batch, dtype=torch.int64))

    def __call__(
        self, views: Mapping[Name, Mapping[str, Embeddings]]
    ) -> dict[Name, dict[str, Embeddings]]:
        """Return the vectors of views, by what names them and level, over all processes."""
        found = {name: dict(levels) for name, levels in views.items()}
        if self.size == 1:
            return found
        places = [(name, level) for name, levels in found.items() for level in levels]
        rows = [found[name][level] for name, level in places]
        columns = [[each.vectors for each in rows], [each.length for each in rows]]
        if self._counts is None:
            columns += [[each.owner for each in rows], [each.slot for each in rows]]
            counts = distributed.row_counts(columns[0])
        else:
            counts = [self._counts] * len(rows)
        flat = [tensor for column in columns for tensor in column]
        whole = iter(distributed.gather(flat, counts * len(columns)))
        gathered = [[next(whole) for _ in rows] for _ in columns]
        for place, (name, level) in enumerate(places):
            vectors, length, *keys = (column[place] for column in gathered)
            owner, slot = keys or (self._keys.owner, self._keys.slot)
            start = sum(counts[place][: self.rank])
            mine = rows[place].vectors
            vectors = torch.cat([vectors[:start], mine, vectors[start + len(mine) :]])
            found[name][level] = Embeddings(vectors, owner, slot, length)
        return found


def joined(
    pieces: list[dict[str, Embeddings]], keys: Mapping[str, RowKeys]
) -> dict[str, Embeddings]:
    """Return the chunks of a view by level, end to end and with their row keys."""
    return {
        level: replace(
            Embeddings.join([piece[level] for piece in pieces]) if len(pieces) > 1 else first,
            owner=keys[level].owner,
            slot=keys[level].slot,
        )
        for level, first in pieces[0].items()
    }
