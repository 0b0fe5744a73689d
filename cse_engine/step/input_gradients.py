"""Gradients of the objective for the inputs of the encoder, looked up by token."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

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
        """Look up ``[T, E]`` gradients of tokens, zero where there is none."""
        keys = token_keys(tokens)
        first = torch.searchsorted(self.keys, keys).clamp_max(len(self.keys) - 1)
        place = (first + occurrences(keys)).clamp_max(len(self.keys) - 1)
        place = torch.where(self.keys[place] == keys, place, first)
        known = (self.keys[place] == keys).unsqueeze(1)
        return torch.where(known, self.values[place], self.values.new_zeros(()))


Spans = Sequence[tuple[View, TokenBatch, int, int]]
"""View, its tokens with batch rows as owners, and where they begin and end in a call."""
Fields = Mapping[tuple[str, str], GradientField]
"""Gradients by point (``word_embeddings``, ``input_embeddings``) and view."""


def look_up(fields: Fields, point: str, view: View, tokens: TokenBatch) -> Tensor | None:
    """Look up ``[T, E]`` the gradient for tokens of a view, by the anchor's where it has none.

    The tokens' owners are batch rows.
    """
    if (point, view.name) in fields:
        return fields[point, view.name].at(tokens)
    if (point, "anchor") in fields:
        return fields[point, "anchor"].at(replace(tokens, slot=tokens.slot % SLOTS_PER_TEXT))
    return None


class GradientCapture:
    """Takes the gradients of the values at some points while a backward pass makes them."""

    def __init__(self, points: Iterable[str] = ()) -> None:
        self.points = frozenset(points)
        self._inputs: list[Tensor] = []
        self._pieces: dict[tuple[str, str], list[tuple[Tensor, Tensor]]] = {}

    def keep(self, point: str, values: Tensor, spans: Spans) -> Tensor:
        """Watch ``[T, E]`` values of the views' tokens at a point; returns what to go on with."""
        if point not in self.points or not torch.is_grad_enabled():
            return values
        if not values.requires_grad:
            values = values.detach().requires_grad_(True)
        self._inputs.append(values)
        values.register_hook(partial(self._take, point, spans))  # type: ignore[no-untyped-call]
        return values

    def _take(self, point: str, spans: Spans, gradient: Tensor) -> None:
        for view, tokens, start, stop in spans:
            piece = token_keys(tokens), gradient[start:stop].detach()
            self._pieces.setdefault((point, view.name), []).append(piece)

    def backward(
        self, roots: Sequence[Tensor], seeds: Sequence[Tensor | None], inputs_only: bool
    ) -> None:
        """Send gradients back from the roots of what was encoded since the last call.

        ``seeds`` are the roots' gradients, None for a scalar; with ``inputs_only`` no weight gets
        one.
        """
        inputs, self._inputs = self._inputs, []
        if roots and not inputs_only:
            torch.autograd.backward(roots, seeds)
        elif roots and inputs:  # whose own functions then do not run: one adds to a weight
            torch.autograd.grad(roots, inputs, seeds, allow_unused=True)

    def fields(
        self, views: Iterable[str], sizes: Mapping[str, int], device: torch.device
    ) -> Fields:
        """Join the field of each point and view over all processes.

        Every process has the views in the same order; ``sizes`` has the dimension of the values at
        each point.
        """
        places = [(point, view) for point in sorted(self.points) for view in views]
        columns: list[Tensor] = []
        for point, view in places:
            none = torch.zeros(0, sizes[point], device=device)
            nothing = [(none.new_zeros(0, dtype=torch.long), none)]
            columns += map(torch.cat, zip(*self._pieces.get((point, view), nothing), strict=True))
        if columns and distributed.rank_and_size()[1] > 1:
            columns[1::2] = [values.float() for values in columns[1::2]]
            columns = distributed.gather(columns, distributed.row_counts(columns))
        return {
            place: GradientField(keys[order], values[order])
            for place, keys, values in zip(places, columns[::2], columns[1::2], strict=True)
            if len(order := torch.argsort(keys, stable=True))
        }
