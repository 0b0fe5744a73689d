"""Gradients of the objective for the inputs of the encoder, looked up by token."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cse_core.runtime import distributed
from cse_core.types import TokenBatch

_SLOTS, _PLACES = 2**20, 2**20


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
        tokens.special, _PLACES // 2 + counted - special - before, tokens.source.clamp_min(0)
    )
    return (tokens.owner[row] * _SLOTS + tokens.slot[row]) * _PLACES + place


@dataclass(frozen=True)
class GradientField:
    """Gradients of one view at one point.

    Attributes:
        keys: ``[T]`` token keys, sorted.
        values: ``[T, E]``.
    """

    keys: Tensor
    values: Tensor

    @staticmethod
    def of(tokens: Sequence[TokenBatch], values: Sequence[Tensor]) -> GradientField:
        """Make a field of pieces of a view."""
        keys = torch.cat([token_keys(piece) for piece in tokens])
        return GradientField.sort(keys, torch.cat(list(values)))

    @staticmethod
    def sort(keys: Tensor, values: Tensor) -> GradientField:
        """Make a field of keys in any order."""
        order = torch.argsort(keys, stable=True)
        return GradientField(keys[order], values[order])

    def at(self, tokens: TokenBatch) -> Tensor:
        """Return ``[T, E]`` gradients of these tokens, zero where there is none."""
        if not len(self.keys):
            return self.values.new_zeros(len(tokens.ids), self.values.shape[1])
        keys = token_keys(tokens)
        place = torch.searchsorted(self.keys, keys).clamp_max(len(self.keys) - 1)
        place += _occurrence(keys)
        place.clamp_(max=len(self.keys) - 1)
        first = torch.searchsorted(self.keys, keys).clamp_max(len(self.keys) - 1)
        place = torch.where(self.keys[place] == keys, place, first)
        found = (self.keys[place] == keys).unsqueeze(1)
        return torch.where(found, self.values[place], self.values.new_zeros(()))


def _occurrence(keys: Tensor) -> Tensor:
    """Return ``[T]`` how many equal keys stand before each: a doubled token's second is 1."""
    order = torch.argsort(keys, stable=True)
    ordered = keys[order]
    first = torch.searchsorted(ordered, ordered)
    occurrence = torch.empty_like(order)
    occurrence[order] = torch.arange(len(keys), device=keys.device) - first
    return occurrence


Fields = Mapping[tuple[str, str], GradientField]
"""Gradients by point and view."""


class GradientCapture:
    """Keeps the tensors whose gradients are wanted, and collects these after the backward pass.

    Args:
        points: ``word_embeddings`` and, or, ``input_embeddings``.
    """

    def __init__(self, points: frozenset[str]) -> None:
        self.points = points
        self.tensors: list[Tensor] = []
        self._kept: list[tuple[str, list[tuple[str, TokenBatch, int, int]]]] = []
        self._fields: dict[tuple[str, str], tuple[list[TokenBatch], list[Tensor]]] = {}

    def keep(
        self, point: str, values: Tensor, spans: list[tuple[str, TokenBatch, int, int]]
    ) -> Tensor:
        """Keep ``[T, E]`` values of the views' tokens at a point; returns what to go on with."""
        if point not in self.points or not torch.is_grad_enabled():
            return values
        if not values.requires_grad:
            values = values.detach().requires_grad_(True)
        self.tensors.append(values)
        self._kept.append((point, spans))
        return values

    def collect(self, gradients: Sequence[Tensor | None]) -> None:
        """Take the gradients of what was kept since the last call, in that order."""
        for gradient, (point, spans) in zip(gradients, self._kept, strict=True):
            for view, tokens, start, stop in spans:
                if gradient is not None:
                    pieces = self._fields.setdefault((point, view), ([], []))
                    pieces[0].append(tokens)
                    pieces[1].append(gradient[start:stop].detach())
        self.tensors, self._kept = [], []

    def fields(
        self, views: Iterable[str], sizes: Mapping[str, int], device: torch.device
    ) -> Fields:
        """Return the field of each point and view, over all processes.

        Args:
            views: All views, in the order that every process has them in.
            sizes: Dimension of the values at each point.
            device: Where the values are.
        """
        found = {key: GradientField.of(*pieces) for key, pieces in self._fields.items()}
        if distributed.world()[1] == 1:
            return found
        whole: dict[tuple[str, str], GradientField] = {}
        for point in sorted(self.points):
            empty = GradientField(
                torch.zeros(0, dtype=torch.long, device=device),
                torch.zeros(0, sizes[point], device=device),
            )
            for view in views:
                own = found.get((point, view), empty)
                keys = distributed.gather_rows(own.keys)
                values = distributed.gather_rows(own.values.float())
                if len(keys):
                    whole[point, view] = GradientField.sort(keys, values)
        return whole
