"""Augmenters of embeddings at work in an encoder call, and the gradients that they may ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from torch import Tensor

from cse_core.engine.assembly import PlacedAugmenter
from cse_core.engine.encoder_call import Spans
from cse_core.engine.input_gradients import Fields, GradientCapture
from cse_core.engine.views import SLOTS, PreparedView, ViewBuilder
from cse_core.runtime.seeds import Draws
from cse_core.types import StepContext, TokenBatch, View

EMBEDDINGS = ("word_embeddings", "input_embeddings")


def look_up(
    fields: Mapping[str, Fields], modes: tuple[str, ...], point: str, view: View, tokens: TokenBatch
) -> Tensor | None:
    """Return ``[T, E]`` the gradient for tokens of a view, by the anchor's where it has none.

    Args:
        fields: Gradients by mode (``fresh``, ``previous``), point and view.
        modes: Modes to look in, the first that has any counts.
        point: ``word_embeddings`` or ``input_embeddings``.
        view: The view.
        tokens: Its tokens, with batch rows as owners.
    """
    for mode in modes:
        own = fields.get(mode, {}).get((point, view.name))
        if own is not None:
            return own.at(tokens)
        anchor = fields.get(mode, {}).get((point, "anchor"))
        if anchor is not None:
            return anchor.at(replace(tokens, slot=tokens.slot % SLOTS))
    return None


@dataclass
class Perturbation:
    """What changes the embeddings of one encoder call.

    Attributes:
        augmenters: Those that act in the call.
        views: The views that are encoded.
        builder: Notes whether an augmenter changes anything.
        context: Makes what parts see.
        draws: ``draws(path, view)`` is the generator of an augmenter for a view.
        fields: Gradients by mode.
        capture: Keeps the tensors whose gradients are wanted.
        watch: Whether to note what never changes anything.
    """

    augmenters: list[PlacedAugmenter]
    views: Mapping[str, PreparedView]
    builder: ViewBuilder
    context: Callable[[], StepContext]
    draws: Callable[[str, str], Draws]
    fields: Mapping[str, Fields] = field(default_factory=dict)
    capture: GradientCapture | None = None
    watch: bool = True

    def idle(self) -> bool:
        """Return whether nothing changes or watches the embeddings."""
        return not self.augmenters and (self.capture is None or not self.capture.points)

    def __call__(self, point: str, values: Tensor, spans: Spans) -> Tensor:
        """Return ``[T, E]`` values at a point, changed by the augmenters of each view in turn."""
        if self.capture is not None:
            values = self.capture.keep(point, values, spans)
        acting = [each for each in self.augmenters if each.point == point]
        if not acting:
            return values
        changed = []
        for name, tokens, start, stop in spans:
            piece = values[start:stop]
            for each in acting:
                if name in each.views and stop > start:
                    piece = self._apply(each, piece, tokens, self.views[name].view)
            changed.append(piece)
        return torch.cat(changed)

    def _apply(
        self, each: PlacedAugmenter, values: Tensor, tokens: TokenBatch, view: View
    ) -> Tensor:
        ctx = replace(
            self.context(),
            generator=self.draws(each.choice.path, view.name),
            gradient=partial(look_up, self.fields, (each.gradient or "fresh",), each.point),
        )
        changed: Tensor = each.part(values, tokens, view, ctx)
        if changed.shape != values.shape:
            raise RuntimeError(
                f"{each.choice.path} made {tuple(changed.shape)} of {tuple(values.shape)} values"
            )
        if self.watch and self.builder.watches(each):
            self.builder.watch(each, bool(torch.equal(changed, values)))
        return changed.to(values.dtype)
