"""Gradients of the objective for the inputs of the encoder, looked up by token."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from cse_core.types import SLOTS_PER_TEXT, TokenBatch, View
from cse_engine.runtime import distributed
from cse_engine.step.row_keys import occurrences, token_keys


@dataclass(frozen=True)
class GradientField:
    """Gradients ``[T, E]`` of one view at one point, by ``[T]`` sorted token keys."""

    keys: Tensor
    values: Tensor

    def at(self, tokens: TokenBatch) -> Tensor:
        """Return ``[T, E]`` gradients of these tokens, zero where there is none."""
        if not len(self.keys):
            return self.values.new_zeros(len(tokens.ids), self.values.shape[1])
        keys = token_keys(tokens)
        first = torch.searchsorted(self.keys, keys).clamp_max(len(self.keys) - 1)
        place = (first + occurrences(keys)).clamp_max(len(self.keys) - 1)
        place = torch.where(self.keys[place] == keys, place, first)
        found = (self.keys[place] == keys).unsqueeze(1)
        return torch.where(found, self.values[place], self.values.new_zeros(()))


Spans = Sequence[tuple[View, TokenBatch, int, int]]
"""View, its tokens with batch rows as owners, and where they begin and end in a call."""
Fields = Mapping[tuple[str, str], GradientField]
"""Gradients by point and view."""


def look_up(
    fields: Mapping[str, Fields], modes: tuple[str, ...], point: str, view: View, tokens: TokenBatch
) -> Tensor | None:
    """Return ``[T, E]`` the gradient for tokens of a view, by the anchor's where it has none.

    ``fields`` are by mode (``fresh``, ``previous``), point (``word_embeddings``,
    ``input_embeddings``) and view; the first of ``modes`` that has any counts. The tokens' owners
    are batch rows.
    """
    for mode in modes:
        known = fields.get(mode, {})
        if (point, view.name) in known:
            return known[point, view.name].at(tokens)
        if (point, "anchor") in known:
            return known[point, "anchor"].at(replace(tokens, slot=tokens.slot % SLOTS_PER_TEXT))
    return None


def backward_to_inputs(
    roots: list[Tensor], seeds: list[Any], wanted: list[Tensor], inputs_only: bool
) -> Sequence[Tensor | None]:
    """Send gradients back from the roots, and return those of the tensors that are wanted.

    ``seeds`` are the roots' gradients, None for a scalar; with ``inputs_only`` no weight gets one.
    """
    if not roots or (inputs_only and not wanted):
        return [None] * len(wanted)
    if inputs_only:
        return torch.autograd.grad(roots, wanted, seeds, allow_unused=True)
    for tensor in wanted:
        tensor.retain_grad()
    torch.autograd.backward(roots, seeds)
    return [tensor.grad for tensor in wanted]


class GradientCapture:
    """Keeps tensors at points whose gradients are wanted; collects these after the backward."""

    def __init__(self, points: frozenset[str]) -> None:
        self.points = points
        self.tensors: list[Tensor] = []
        self._kept: list[tuple[str, Spans]] = []
        self._found: dict[tuple[str, str], list[tuple[Tensor, Tensor]]] = {}

    def keep(self, point: str, values: Tensor, spans: Spans) -> Tensor:
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
                    piece = token_keys(tokens), gradient[start:stop].detach()
                    self._found.setdefault((point, view.name), []).append(piece)
        self.tensors, self._kept = [], []

    def fields(
        self, views: Iterable[str], sizes: Mapping[str, int], device: torch.device
    ) -> Fields:
        """Return the field of each point and view, over all processes.

        Every process has the views in the same order; ``sizes`` has the dimension of the values at
        each point.
        """
        places = [(point, view) for point in sorted(self.points) for view in views]
        own: list[Tensor] = []
        for point, view in places:
            none = torch.zeros(0, sizes[point], device=device)
            nothing = [(none.new_zeros(0, dtype=torch.long), none)]
            own += map(torch.cat, zip(*self._found.get((point, view), nothing), strict=True))
        if own and distributed.rank_and_size()[1] > 1:
            own[1::2] = [values.float() for values in own[1::2]]
            own = distributed.gather(own, distributed.row_counts(own))
        return {
            place: GradientField(keys[order], values[order])
            for place, keys, values in zip(places, own[::2], own[1::2], strict=True)
            if len(order := torch.argsort(keys, stable=True))
        }
