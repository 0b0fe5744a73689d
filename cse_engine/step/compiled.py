"""Encoder layers by torch's compiler, for training."""

from __future__ import annotations

import copy
import os
import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import nn

from cse_core.errors import CseError
from cse_core.protocols import Encoder
from cse_engine.step.dropout import DropoutSource

_WHERE = "train.compile"


class Compiled:
    """The forward pass of a layer: compiled in training, from the first call on, else as it is.

    Hooks of the layer stay outside. A copy of the layer compiles a pass of its own.
    """

    def __init__(self, layer: nn.Module) -> None:
        self._layer, self._plain = layer, layer.forward
        self._made: Callable[..., Any] | None = None

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Run the layer."""
        if not self._layer.training:
            return self._plain(*given, **named)
        if self._made is None:
            # Masks must be those of a pass that is not compiled, such as one that is recomputed.
            how = {"dynamic": True, "options": {"fallback_random": True}}
            self._made = torch.compile(self._plain, **how)  # type: ignore[call-overload]
        return self._made(*given, **named)

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled:
        memo[id(self)] = made = copy.copy(self)
        made._layer, made._plain = copy.deepcopy((self._layer, self._plain), memo)
        made._made = None
        return made


def compile_layers(encoder: Encoder, dropout: DropoutSource, device: torch.device) -> None:
    """Let the layers of an encoder be compiled on a device, with the masks of ``dropout``.

    It comes before ``use_dropout``, which lets the backward pass recompute layers as they are then.

    Raises:
        CseError: If the encoder has no layers that are known, or the machine no compiler.
    """
    if not (layers := encoder.layers()):
        what = "the encoder has no layers that are known"
        raise CseError(what, where=_WHERE, value=True, hint="leave it out")
    compiler = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    if device.type == "cpu" and shutil.which(compiler) is None:
        hint = f"install {compiler}, or name a C++ compiler in the variable CXX"
        raise CseError("the machine has no C++ compiler", where=_WHERE, value=True, hint=hint)
    if device.type == "cuda" and find_spec("triton") is None:
        hint = "install triton, or leave it out"
        raise CseError("on a GPU it needs triton", where=_WHERE, value=True, hint=hint)
    for layer in dict.fromkeys(layers):
        layer.forward = Compiled(layer)
    if device.type == "cpu":
        dropout.leave_graphs()
