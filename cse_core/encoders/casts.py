"""Under autocast, one cast of what several linear layers read.

Queries, keys and values are made of the same hidden states. Autocast keeps the casts of weights and
makes those of inputs anew for each layer, forward and backward, and keeps each until the backward
pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


class CastOnce:
    """Keeps the last cast that a linear layer of a model asked for, for the next one.

    Gradients of the layers that share a cast are summed in its number format.
    """

    def __init__(self) -> None:
        self._keeps = False
        self._states: Tensor | None = None
        self._version: tuple[int, bool] | None = None
        self._cast: Tensor | None = None

    def watch(self, model: nn.Module) -> None:
        """Cast for the linear layers of ``model`` wherever a pass is inside :meth:`keeping`."""
        for module in model.modules():
            if isinstance(module, nn.Linear):
                module.register_forward_pre_hook(self._before)

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Keep casts, and forget the last one at the end: no states outlive their pass."""
        self._keeps = True
        try:
            yield
        finally:
            self._keeps = False
            self._states = self._cast = None

    def _before(self, _: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        states: Tensor = inputs[0]
        kind = states.device.type
        if not self._keeps or states.dtype != torch.float32 or not torch.is_autocast_enabled(kind):
            return None
        # The same tensor changed in place is another input; inference tensors do not tell.
        version = None if states.is_inference() else (states._version, torch.is_grad_enabled())
        if version is None or states is not self._states or version != self._version:
            self._states, self._version = states, version
            self._cast = states.to(torch.get_autocast_dtype(kind))
        return self._cast, *inputs[1:]
