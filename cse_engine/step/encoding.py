"""One encoder call over several views, and what losses on token states are given of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from cse_core.types import Embeddings, TokenBatch, TokenStates
from cse_engine.step.input_gradients import Spans
from cse_engine.step.sentence_encoder import SentenceEncoder
from cse_engine.step.views import PreparedView

Levels = dict[str, dict[str, Embeddings]]
"""Embeddings by view and level."""


def encode_views(
    encoder: SentenceEncoder,
    views: Mapping[str, PreparedView],
    device: torch.device,
    input_level: bool,
    change: Callable[[str, Spans, Tensor], Tensor] | None,
    states: dict[str, Tensor] | None = None,
) -> Levels:
    """Encode views laid end to end, and take them apart again.

    ``change`` sees and changes ``[T, E]`` values at a point; None where nobody does. ``states``
    takes the last token states ``[T, H]`` of each view; None where nobody reads them.
    The keys of the embeddings that are returned number the texts of the call.
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
        on_states=None if states is None else partial(_part, states, views),
    )
    found: Levels = {name: {} for name in views}
    for level, joint in levels.items():
        if joint.vectors.dtype.itemsize < 4:
            joint = replace(joint, vectors=joint.vectors.float())
        start = 0
        for name, view in views.items():
            stop = start + (view.tokens.rows if level == encoder.row_level else view.texts)
            found[name][level] = joint.take(slice(start, stop))
            start = stop
    return found


def _part(states: dict[str, Tensor], views: Mapping[str, PreparedView], last: Tensor) -> None:
    """Take the states of views that lie end to end apart."""
    lengths = [len(view.tokens.ids) for view in views.values()]
    states.update(zip(views, torch.split(last, lengths), strict=True))


def token_states(
    view: PreparedView, states: Tensor, vectors: Tensor, *, first: int, device: torch.device
) -> TokenStates:
    """Return what a loss on token states is given of a view's rows.

    ``first`` is the batch row of the first of the rows at hand.
    """
    tokens, labelled = view.tokens.with_labels()
    return TokenStates(
        tokens=tokens.to(device),
        states=states,
        vectors=vectors,
        labelled=labelled.to(device, non_blocking=True),
        place=tokens.owner - first,
    )
