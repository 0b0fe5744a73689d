"""One encoder call over several views, and what losses on token states are given of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import accumulate

import torch
from torch import Tensor

from cse_core.types import Embeddings, Hidden, TokenBatch, TokenStates, Units
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
    first: int | None = None,
    layers: Iterable[int] = (),
) -> tuple[Levels, dict[str, TokenStates]]:
    """Encode views laid end to end, and take them apart again.

    ``change`` sees and changes ``[T, E]`` values at a point; None where nobody does. ``first`` is
    the batch row of the first of the rows, for their token states; None where nobody reads them.
    Token states have those of ``layers`` too. The keys of the embeddings that are returned number
    the texts of the call.
    """
    pieces, texts = [], 0
    lengths = [len(view.tokens.ids) for view in views.values()]
    for view in views.values():
        # Texts of one sentence, and of several views, are joined each by itself.
        pieces.append(replace(view.tokens, owner=view.text + texts if texts else view.text))
        texts += int(view.text[-1]) + 1 if len(view.text) else 0
    hooks: dict[str, Callable[[Tensor], Tensor]] = {}
    if change is not None:
        stops = list(accumulate(lengths))
        spans = [
            (view.view, view.tokens.to(device), stop - length, stop)
            for view, length, stop in zip(views.values(), lengths, stops, strict=True)
        ]
        hooks["on_words"] = partial(change, "word_embeddings", spans)
        hooks["on_input"] = partial(change, "input_embeddings", spans)
    states_of: list[Hidden] = []
    units = {
        level: Units.join([(view.units[level], view.tokens) for view in views.values()])
        for level in encoder.several
    }
    joint = encoder.embed(
        TokenBatch.join(pieces, pinned=device.type == "cuda"),
        device,
        sum(view.texts for view in views.values()),
        **hooks,
        input_level=input_level,
        on_hidden=None if first is None else states_of.append,
        layers=layers,
        units=units,
    )
    levels: Levels = {name: {} for name in views}
    for level, rows in joint.items():
        if rows.vectors.dtype.itemsize < 4:
            rows = replace(rows, vectors=rows.vectors.float())
        start = 0
        for name, view in views.items():
            count = len(view.units[level]) if level in units else view.texts
            stop = start + (view.tokens.rows if level == encoder.row_level else count)
            levels[name][level] = rows.take(slice(start, stop))
            start = stop
    states: dict[str, TokenStates] = {}
    if first is not None:
        (hidden,) = states_of
        last = torch.split(hidden.last, lengths)
        deep = {layer: torch.split(hidden.layers[layer], lengths) for layer in layers}
        for i, (name, part) in enumerate(zip(views, last, strict=True)):
            tokens, labelled = views[name].tokens.with_labels()
            states[name] = TokenStates(
                tokens=tokens.to(device),
                states=part,
                vectors=levels[name][encoder.row_level].vectors,
                labelled=labelled.to(device, non_blocking=True),
                place=tokens.owner - first,
                layers={layer: pieces[i] for layer, pieces in deep.items()},
            )
    return levels, states
