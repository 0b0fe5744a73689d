"""Negatives of large batches: masks and weights for some anchors at a time.

A mask of every anchor and every negative grows with the square of the batch. Where there are many
pairs, a loss gets negatives whose mask and weights are made when they are asked for, of a slice of
the anchors; :func:`cse_core.functional.infonce_terms` asks slice by slice, and each process only
for its own anchors. Another loss that reads ``mask`` or ``log_weights`` gets them whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar, cast

from torch import Tensor

from cse_core.types import Batch, Embeddings, Negatives, Positives, Tiles
from cse_engine.runtime.distributed import all_reduce_total, gather, rank_and_size, share

Group = TypeVar("Group", Positives, Negatives, Embeddings)
PAIRS = 2**22
"""Pairs of an anchor and a negative of which mask and weights are made at once."""
ALL = slice(None)
Make = Callable[[slice], Negatives]
"""Makes the negatives of a slice of the anchors."""


class TiledNegatives(Negatives):
    """Negatives with ``tiles``, whose mask and weights are made when they are first read."""

    def __init__(self, **columns: Any) -> None:
        vars(self).update(columns)

    @cached_property
    def mask(self) -> Tensor:
        """Make ``[A, N]``, of all anchors."""
        return self._whole.mask

    @cached_property
    def log_weights(self) -> Tensor:
        """Make ``[A, N]``, of all anchors."""
        return self._whole.log_weights

    @cached_property
    def _whole(self) -> Negatives:
        assert self.tiles is not None
        return self.tiles.of(ALL)


def in_tiles(batch: Batch, most: int, make: Make) -> Negatives:
    """Apply ``make`` to all anchors of a batch, in tiles where there are many pairs.

    ``make`` returns the negatives of a slice of the anchors, at most ``most`` of them: where that
    is few enough they are not counted. Weights with a gradient are made at once: a process would
    have it only for its own anchors.
    """
    anchors = len(batch.anchors)
    if anchors * most <= PAIRS:
        return make(ALL)
    columns = make(slice(0, 1))
    if anchors * len(columns) <= PAIRS or columns.log_weights.requires_grad:
        return make(ALL)
    rank, size = rank_and_size()
    if len(batch.rows) < size:  # a process without rows has no backward pass
        rank, size = 0, 1
    shares = [share(anchors, process, size) for process in range(size)]
    counts = [[stop - start for start, stop in shares]]
    rows = max(PAIRS // len(columns), 1)
    tiles = Tiles(
        of=make,
        all=tuple(_slices(0, anchors, rows)),
        own=tuple(_slices(*shares[rank], rows)),
        gathered=lambda part: part if size == 1 else gather([part], counts)[0],
        summed=lambda part: part if size == 1 else all_reduce_total(part),
    )
    made = {name: v for name, v in vars(columns).items() if name not in ("mask", "log_weights")}
    return TiledNegatives(**made, tiles=tiles)


def _slices(start: int, stop: int, rows: int) -> Iterator[slice]:
    for first in range(start, stop, rows):
        yield slice(first, min(first + rows, stop))


def some_anchors(batch: Batch, some: slice | Tensor) -> Batch:
    """Return a batch with some of its anchors; views and rows stay those of all sentences."""
    if some is ALL:
        return batch
    targets = {}
    for name, group in batch.targets.items():
        if len(group.vectors) == len(batch.anchors):
            weights = None if group.weights is None else group.weights[some]
            targets[name] = Positives(group.vectors[some], weights)
    stored = {name: seen_by_some(candidates, some) for name, candidates in batch.stored.items()}
    anchors, owner, slot = (rows[some] for rows in (batch.anchors, batch.owner, batch.slot))
    return replace(batch, anchors=anchors, owner=owner, slot=slot, targets=targets, stored=stored)


def seen_by_some(negatives: Negatives, some: slice | Tensor) -> Negatives:
    """Return negatives as some of the anchors see them."""
    if some is ALL:
        return negatives
    return replace(negatives, mask=negatives.mask[some], log_weights=negatives.log_weights[some])


def with_vectors(group: Group, change: Callable[[Tensor], Tensor]) -> Group:
    """Change the vectors of a group; negatives in tiles stay so."""
    vectors = change(group.vectors)
    if isinstance(group, TiledNegatives):
        return cast(Group, TiledNegatives(**{**vars(group), "vectors": vectors}))
    return replace(group, vectors=vectors)


def batch_with_vectors(batch: Batch, change: Callable[[Tensor], Tensor]) -> Batch:
    """Return a batch with all vectors changed: of anchors, positives, candidates and views."""

    def changed(groups: Mapping[str, Group]) -> dict[str, Group]:
        return {name: with_vectors(group, change) for name, group in groups.items()}

    targets, stored = changed(batch.targets), changed(batch.stored)
    views = {name: changed(levels) for name, levels in batch.views.items()}
    anchors = change(batch.anchors)
    return replace(batch, anchors=anchors, targets=targets, stored=stored, views=views)
