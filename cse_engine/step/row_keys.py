"""Row keys: of which sentence a row is, and which of its rows.

By them the chunks of a view are joined, its rows gathered over the processes, and views aligned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

from cse_core.types import Batch, Embeddings, Positives, TokenBatch
from cse_engine.runtime import distributed
from cse_engine.step.tiles import some_anchors

Name = TypeVar("Name")
MAX_SLOTS, MAX_TOKENS = 2**20, 2**20


@dataclass(frozen=True)
class RowKeys:
    """Keys of rows.

    Attributes:
        owner: ``[N]`` batch row of the sentence, over all processes.
        slot: ``[N]`` which row of its sentence.
    """

    owner: Tensor
    slot: Tensor

    def equal(self, other: RowKeys) -> bool:
        """Compare keys and their order; what is not the very same tensor is read."""
        pairs = ((self.owner, other.owner), (self.slot, other.slot))
        return all(one is two or torch.equal(one, two) for one, two in pairs)


class KeysOnDevice:
    """Row keys where tensors belong, copied there once: equal ones are the very same tensors.

    Whether two views have equal rows is so known from the CPU, and no GPU is asked.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._known: list[tuple[RowKeys, RowKeys]] = []

    def of(self, owner: Tensor, slot: Tensor) -> RowKeys:
        """Return keys that are on the CPU, on the device."""
        keys = RowKeys(owner, slot)
        for known, copy in self._known:
            if known.equal(keys):
                return copy
        moved = RowKeys(*(key.to(self.device, non_blocking=True) for key in (owner, slot)))
        self._known.append((keys, moved))
        return moved


def number(owner: Tensor, slot: Tensor) -> Tensor:
    """Return ``[N]`` one integer for each key, in the order of owners and slots."""
    return owner * MAX_SLOTS + slot


def token_keys(tokens: TokenBatch) -> Tensor:
    """Return ``[T]`` keys of tokens: batch row, slot, index in the sentence.

    Special and prompt tokens, which have no index, are counted inside their row.
    """
    row = tokens.row_of_token()
    special = tokens.special.long()
    counted = torch.cumsum(special, 0)
    starts = tokens.offsets[:-1].to(row.device, non_blocking=True)
    before = torch.zeros_like(row)
    if len(row):
        before = (counted - special)[starts.clamp_max(len(row) - 1)][row]
    place = torch.where(
        tokens.special, MAX_TOKENS // 2 + counted - special - before, tokens.source.clamp_min(0)
    )
    return number(tokens.owner[row], tokens.slot[row]) * MAX_TOKENS + place


def occurrences(keys: Tensor) -> Tensor:
    """Return ``[N]`` how many equal keys stand before each: the second of two has 1."""
    order = torch.argsort(keys, stable=True)
    ordered = keys[order]
    first = torch.searchsorted(ordered, ordered)
    occurrence = torch.empty_like(order)
    occurrence[order] = torch.arange(len(keys), device=keys.device) - first
    return occurrence


def align(views: Mapping[str, Embeddings]) -> dict[str, Embeddings]:
    """Return the rows that all views have, in the anchor's order: joined by key, not by place."""
    anchor = views["anchor"]
    base = RowKeys(anchor.owner, anchor.slot)
    if all(base.equal(RowKeys(view.owner, view.slot)) for view in views.values()):
        return dict(views)
    keys = {name: number(view.owner, view.slot) for name, view in views.items()}
    common = keys["anchor"]
    for key in keys.values():
        common = common[torch.isin(common, key)]
    joined = {}
    for name, view in views.items():
        ordered, order = torch.sort(keys[name], stable=True)
        joined[name] = view.take(order[torch.searchsorted(ordered, common)])
    return joined


class Gathering:
    """Gathers vectors in rank order, with gradient for one's own.

    Args:
        batch: Rows of the batch over all processes.
        row_each: Whether a view has one row for each of them, in their order. Every process then
            knows the rows of all; else how many there are is asked for first.
        on_device: Copies row keys to the device.
    """

    def __init__(self, batch: int, row_each: bool, on_device: KeysOnDevice) -> None:
        self.on_device = on_device
        self.rank, self.size = distributed.rank_and_size()
        shares = [distributed.share(batch, rank, self.size) for rank in range(self.size)]
        self._counts = [stop - start for start, stop in shares] if row_each else None
        if self.size > 1 and row_each:
            self._keys = on_device.of(torch.arange(batch), torch.zeros(batch, dtype=torch.int64))

    def __call__(
        self, views: Mapping[Name, Mapping[str, Embeddings]]
    ) -> dict[Name, dict[str, Embeddings]]:
        """Return the vectors of views, by what names them and level, over all processes."""
        joined = {name: dict(levels) for name, levels in views.items()}
        if self.size == 1:
            return joined
        places = [(name, level) for name, levels in joined.items() for level in levels]
        rows = [joined[name][level] for name, level in places]
        columns = [[part.vectors for part in rows], [part.length for part in rows]]
        if self._counts is None:
            columns += [[part.owner for part in rows], [part.slot for part in rows]]
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
            joined[name][level] = Embeddings(vectors, owner, slot, length)
        return joined


def join_chunks(
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


def rows_that_hold(
    batch: Batch, wanted: Mapping[str, str], texts: Callable[[str], list[str]]
) -> Batch:
    """Return the rows of a batch whose texts in columns are these, and what stores have for them.

    ``texts(column)`` are those of the ``[B]`` rows. A GPU is waited for where some rows hold them
    and others do not.
    """
    columns = [[text == value for text in texts(name)] for name, value in wanted.items()]
    fits = [all(row) for row in zip(*columns, strict=True)]
    if all(fits):
        return batch
    kept = torch.tensor(fits, device=batch.owner.device)
    here = kept[batch.owner]
    place = here.cumsum(0) - 1
    some = some_anchors(batch, here.nonzero().squeeze(1))

    def in_new_places(name: str, group: Positives) -> Positives:
        distinct, count = batch.targets[name].distinct, group.vectors.shape[1]
        if distinct is not None:
            distinct = distinct[here[distinct // count]]
            distinct = place[distinct // count] * count + distinct % count
        return replace(group, distinct=distinct)

    return replace(
        some,
        targets={name: in_new_places(name, group) for name, group in some.targets.items()},
        views={
            view: {
                level: rows.take(kept[rows.owner].nonzero().squeeze(1))
                for level, rows in levels.items()
            }
            for view, levels in batch.views.items()
        },
    )
