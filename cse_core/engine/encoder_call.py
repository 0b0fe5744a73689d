"""One encoder call over several views, and the augmenters of embeddings at work in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from cse_core.engine.assembly import PlacedAugmenter
from cse_core.engine.input_gradients import Fields, GradientCapture, Spans, look_up
from cse_core.engine.views import PreparedView, ViewBuilder
from cse_core.models.sentence_encoder import SentenceEncoder
from cse_core.runtime.seeds import Draws
from cse_core.types import Embeddings, StepContext, TokenBatch, View

Levels = dict[str, dict[str, Embeddings]]
"""Embeddings by view and level."""
EMBEDDINGS = ("word_embeddings", "input_embeddings")


def encode(
    encoder: SentenceEncoder,
    views: Mapping[str, PreparedView],
    device: torch.device,
    input_level: bool,
    change: Callable[[str, Spans, Tensor], Tensor] | None,
) -> Levels:
    """Encode views laid end to end, and take them apart again.

    ``change`` sees and changes ``[T, E]`` values at a point; None where nobody does.

    Returns:
        The embeddings of each view by level; their keys number the texts of the call.
    """
    pieces, texts = [], 0
    spans, start = [], 0
    for view in views.values():
        # Texts of one sentence, and of several views, are joined each by itself.
        pieces.append(replace(view.tokens, owner=view.text + texts if texts else view.text))
        texts += int(view.text[-1]) + 1 if len(view.text) else 0
        if change is not None:
            stop = start + len(view.tokens.ids)
            spans.append((view.view, view.tokens.to(device), start, stop))
            start = stop
    levels = encoder.embed(
        TokenBatch.join(pieces, pinned=device.type == "cuda"),
        device,
        sum(view.texts for view in views.values()),
        on_words=None if change is None else partial(change, "word_embeddings", spans),
        on_input=None if change is None else partial(change, "input_embeddings", spans),
        input_level=input_level,
    )
    found: Levels = {name: {} for name in views}
    for level, joint in levels.items():
        start = 0
        for name, view in views.items():
            stop = start + (view.tokens.rows if level == encoder.row_level else view.texts)
            found[name][level] = _part(joint, slice(start, stop))
            start = stop
    return found


def _part(joint: Embeddings, rows: slice) -> Embeddings:
    vectors = joint.vectors[rows]
    vectors = vectors if vectors.dtype.itemsize >= 4 else vectors.float()
    return Embeddings(vectors, joint.owner[rows], joint.slot[rows], joint.length[rows])


@dataclass
class Perturbation:
    """What changes and watches the embeddings of one encoder call.

    Attributes:
        draws: ``draws(path, view)`` is the generator of an augmenter for a view.
        fields: Gradients by mode.
        watch: Whether the builder notes what never changes anything.
    """

    augmenters: list[PlacedAugmenter]
    builder: ViewBuilder
    context: Callable[[], StepContext]
    draws: Callable[[str, str], Draws]
    fields: Mapping[str, Fields]
    capture: GradientCapture | None
    watch: bool

    @property
    def idle(self) -> bool:
        """Whether nothing changes or watches the embeddings."""
        return not self.augmenters and (self.capture is None or not self.capture.points)

    def __call__(self, point: str, spans: Spans, values: Tensor) -> Tensor:
        """Return ``[T, E]`` values at a point, changed by the augmenters of each view in turn."""
        if self.capture is not None:
            values = self.capture.keep(point, values, spans)
        acting = [augmenter for augmenter in self.augmenters if augmenter.point == point]
        if not acting:
            return values
        changed = []
        for view, tokens, start, stop in spans:
            piece = values[start:stop]
            for augmenter in acting:
                if view.name in augmenter.views and stop > start:
                    piece = self._apply(augmenter, piece, tokens, view)
            changed.append(piece)
        return torch.cat(changed)

    def _apply(
        self, augmenter: PlacedAugmenter, values: Tensor, tokens: TokenBatch, view: View
    ) -> Tensor:
        path, modes = augmenter.choice.path, (augmenter.gradient or "fresh",)
        ctx = replace(
            self.context(),
            generator=self.draws(path, view.name),
            gradient=partial(look_up, self.fields, modes, augmenter.point),
        )
        changed: Tensor = augmenter.part(values, tokens, view, ctx)
        if changed.shape != values.shape:
            shapes = f"{tuple(changed.shape)} of {tuple(values.shape)}"
            raise RuntimeError(f"{path} made {shapes} values")
        if self.watch and self.builder.watches(augmenter):
            self.builder.watch(augmenter, bool(torch.equal(changed, values)))
        return changed.to(values.dtype)
