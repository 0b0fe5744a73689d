"""One encoder call over several views."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from cse_core.engine.input_gradients import Spans
from cse_core.engine.views import PreparedView
from cse_core.models.sentence_encoder import SentenceEncoder
from cse_core.types import Embeddings, TokenBatch

Levels = dict[str, dict[str, Embeddings]]
"""Embeddings by view and level."""
EMBEDDINGS = ("word_embeddings", "input_embeddings")
"""Points at which embeddings are changed and watched."""


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
        if joint.vectors.dtype.itemsize < 4:
            joint = replace(joint, vectors=joint.vectors.float())
        start = 0
        for name, view in views.items():
            stop = start + (view.tokens.rows if level == encoder.row_level else view.texts)
            found[name][level] = joint.take(slice(start, stop))
            start = stop
    return found
