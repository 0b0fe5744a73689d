"""Row keys: of which sentence a row is, and which of its rows.

By them the chunks of a view are joined, its rows gathered over the processes, and views aligned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

from cse_core.types import MAX_SLOTS, Batch, Embeddings, TokenBatch
from cse_engine.runtime import distributed
from cse_engine.step.tiles import some_anchors

Name = TypeVar("Name")
MAX_TOKENS = 2**20


@dataclass(frozen=True)
class RowKeys:
    """Keys of rows.

    Attributes:
        owner: ``[N]`` batch row of the sentence, over all processes.
        slot: ``[N]`` which row of its sentence.
    """

    owner: Tensor
    slot: Tensor


class KeysOnDevice:
    """Row keys where tensors belong, copied there once: equal ones are the very same tensors.

    Whether two views have equal rows is so known from the CPU, and no GPU is asked.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._copies: dict[tuple[bytes, bytes], RowKeys] = {}

    def of(self, owner: Tensor, slot: Tensor) -> RowKeys:
        """Return keys that are on the CPU, on the device."""
        name = owner.numpy().tobytes(), slot.numpy().tobytes()
        if name not in self._copies:
            copies = (keys.to(self.device, non_blocking=True) for keys in (owner, slot))
            self._copies[name] = RowKeys(*copies)
        return self._copies[name]


def number(owner: Tensor, slot: Tensor) -> Tensor:
    """Return ``[N]`` one integer for each key, in the order of owners and slots."""
    return owner * MAX_SLOTS + slot


def token_keys(tokens: TokenBatch) -> Tensor:
    """Return ``[T]`` keys of tokens: batch row, slot, index in the sentence.

    Special and prompt tokens, which have no index, are counted inside their row.
    """
    row = tokens.row_of_token()
    among = occurrences(torch.where(tokens.special, row, -1))
    place = torch.where(tokens.special, MAX_TOKENS // 2 + among, tokens.source.clamp_min(0))
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
    pairs = [
        pair for v in views.values() for pair in ((v.owner, anchor.owner), (v.slot, anchor.slot))
    ]
    if all(one is two or torch.equal(one, two) for one, two in pairs):  # a GPU is asked for others
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


def gather_views(
    views: dict[Name, dict[str, Embeddings]], batch: int, keys: RowKeys | None
) -> dict[Name, dict[str, Embeddings]]:
    """Gather vectors in rank order, with gradient for this process's.

    Args:
        views: The vectors of this process, by what names them and level.
        batch: Rows of the batch over all processes.
        keys: Keys of all of them, where a view has one row for each, in their order. Every process
            then knows the rows of all; else how many there are is asked for first.
    """
    rank, size = distributed.rank_and_size()
    if size == 1:
        return views
    places = [(name, level) for name, levels in views.items() for level in levels]
    rows = [views[name][level] for name, level in places]
    fields = ("vectors", "length") if keys is not None else ("vectors", "length", "owner", "slot")
    columns = [getattr(part, field) for field in fields for part in rows]
    if keys is not None:
        shares = [distributed.share(batch, other, size) for other in range(size)]
        counts = [[stop - start for start, stop in shares]] * len(rows)
    else:
        counts = distributed.row_counts(columns[: len(rows)])
    whole = distributed.gather(columns, counts * len(fields))
    joined: dict[Name, dict[str, Embeddings]] = {name: {} for name in views}
    for place, (name, level) in enumerate(places):
        vectors, length, *others = whole[place :: len(rows)]
        owner, slot = others if keys is None else (keys.owner, keys.slot)
        start, local = sum(counts[place][:rank]), rows[place].vectors
        vectors = torch.cat([vectors[:start], local, vectors[start + len(local) :]])
        joined[name][level] = Embeddings(vectors, owner, slot, length)
    return joined


def join_chunks(
    pieces: list[dict[str, Embeddings]], keys: Mapping[str, RowKeys]
) -> dict[str, Embeddings]:
    """Return the chunks of a view by level, end to end and with their row keys."""
    joined = {}
    for level, first in pieces[0].items():
        rows = Embeddings.join([piece[level] for piece in pieces]) if len(pieces) > 1 else first
        joined[level] = replace(rows, owner=keys[level].owner, slot=keys[level].slot)
    return joined


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
    some = some_anchors(batch, here)
    targets = dict(some.targets)
    for name, group in some.targets.items():
        distinct, count = batch.targets[name].distinct, group.vectors.shape[1]
        if distinct is not None:
            distinct = distinct[here[distinct // count]]
            distinct = place[distinct // count] * count + distinct % count
            targets[name] = replace(group, distinct=distinct)
    views = {
        view: {level: rows.take(kept[rows.owner]) for level, rows in levels.items()}
        for view, levels in batch.views.items()
    }
    return replace(some, targets=targets, views=views)
