"""Layers whose activations are computed again in the backward pass instead of kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from cse_core.encoders.architecture import transformer_layers
from cse_core.encoders.dropout import DropoutSource
from cse_core.encoders.row_layout import RowLayout
from cse_core.errors import CseError


def recompute_layers(model: PreTrainedModel, source: DropoutSource) -> None:
    """Keep of each transformer layer what enters it alone, in passes with gradient.

    What comes of it is the same, bit for bit: the masks that ``source`` gave are drawn once more.
    transformers' own switch calls a layer's hooks again too, and these end with the forward pass.

    Raises:
        CseError: If the layers of the model are not known.
    """
    layers = transformer_layers(model)
    if not layers:
        what = f"the layers of {type(model).__name__} are not known"
        where = "model.gradient_checkpointing"
        raise CseError(what, where=where, value=True, hint="leave it out, or set train.chunk_size")
    for layer in dict.fromkeys(layers):
        # A copy of the model copies this with the layer's own method.
        layer.forward = partial(_forward, layer.forward, source)


def _forward(forward: Callable[..., Any], source: DropoutSource, *given: Any, **named: Any) -> Any:
    if not torch.is_grad_enabled():
        return forward(*given, **named)
    layout: RowLayout | None = named.get("row_layout")
    again = _Again(forward, source, layout, source.state, layout.memory if layout else None)
    return checkpoint(again, *given, use_reentrant=False, **named)


@dataclass
class _Again:
    """A layer's forward pass, made for the first time as it is and later as it was."""

    forward: Callable[..., Any]
    source: DropoutSource
    layout: RowLayout | None
    state: Any
    memory: tuple[torch.Tensor, torch.Tensor] | None
    made: bool = field(default=False, init=False)

    def __call__(self, *given: Any, **named: Any) -> Any:
        if not self.made:
            self.made = True
            return self.forward(*given, **named)
        before = self.source.state
        self.source.state = self.state
        if self.layout is not None:
            self.layout.memory = self.memory
        try:
            return self.forward(*given, **named)
        finally:
            self.source.state = before
            if self.layout is not None:
                self.layout.memory = None
