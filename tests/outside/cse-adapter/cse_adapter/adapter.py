"""A branch whose encoder has bottleneck adapters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from cse_adapter.options import AdapterOptions
from cse_core.errors import CseError
from cse_core.parts import Branch, Setup
from cse_core.protocols import Encoder


class Bottleneck(nn.Module):
    """``x + U gelu(D x)``; U is zero at the start, so that the encoder starts as it was."""

    def __init__(self, size: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.down = nn.Linear(size, width)
        self.up = nn.Linear(width, size)
        with torch.no_grad():
            self.down.weight.copy_(0.02 * torch.randn(width, size, generator=generator))
            for zero in (self.down.bias, self.up.weight, self.up.bias):
                zero.zero_()

    def forward(self, states: Tensor) -> Tensor:
        """Return states of the same shape, H in the last dimension."""
        changed: Tensor = self.up(nn.functional.gelu(self.down(states)))
        return states + changed


def layers_of(encoder: Encoder) -> nn.ModuleList:
    """Return the layers of an encoder. Raises CseError where they are not in a list."""
    for module in encoder.model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == encoder.layer_count:
            return module
    raise CseError("the encoder has no list of layers", hint="use one like BERT or RoBERTa")


class AdapterBranch(nn.Module, Branch):
    """The online encoder with a trained bottleneck behind some of its layers.

    As in Houlsby et al. the encoder below is frozen. Their adapters stand behind attention and
    behind the feed-forward part; here one stands behind the whole layer.
    """

    def __init__(self, options: AdapterOptions, setup: Setup) -> None:
        super().__init__()
        self.options = options
        self.name = setup.name
        self.training = options.mode == "train"
        self.heads = {}
        encoder = setup.online_encoder().copy().requires_grad_(False)
        layers = layers_of(encoder)
        after = options.after or range(1, len(layers) + 1)
        draws = setup.generator(f"{setup.name}.adapters")
        self.adapters = nn.ModuleDict(
            {
                str(layer): Bottleneck(setup.hidden_size, options.width, draws).to(setup.device)
                for layer in after
            }
        )
        for layer in after:
            layers[layer - 1].register_forward_hook(changes(self.adapters[str(layer)]))
        # Not a submodule: its weights never change.
        object.__setattr__(self, "encoder", encoder)


def changes(adapter: nn.Module) -> Callable[..., Any]:
    """Return a hook that passes the states of a layer through an adapter."""

    def hook(module: nn.Module, inputs: Any, output: Any) -> Any:
        if isinstance(output, tuple):
            return (adapter(output[0]), *output[1:])
        return adapter(output)

    return hook
