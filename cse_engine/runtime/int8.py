"""Linear layers in int8, for encoding on a processor with instructions for it."""

from __future__ import annotations

from typing import Any, cast
from weakref import ref

import torch
from torch import Tensor, nn

from cse_core.errors import CseError
from cse_engine.runtime.device import Precision

INSTRUCTIONS = ("avx512_vnni", "avx_vnni", "amx_int8")
"""Any of these multiplies int8 faster than fp32."""
INT8 = Precision("int8", None, "it was asked for")
_WHERE = "train.precision"
_LEAST = 1e-12


class Int8Linear(nn.Module):
    """A linear layer whose weights and inputs have 8 bits.

    Weights have a scale for each output, inputs a scale and an offset for each token, so that a
    text's vector does not depend on the texts beside it: what GELU gives is nearly all positive,
    and half of the numbers would be lost without an offset. Sums are exact, in int32.

    Args:
        layer: The layer, which stays as it is.
        last: What the layers of a model share: their last input, which queries, keys and values
            have in common.
    """

    weight: Tensor
    scale: Tensor
    sums: Tensor

    def __init__(self, layer: nn.Linear, last: list[Any] | None = None) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        weight = layer.weight.detach().float()
        scale = weight.abs().amax(dim=1, keepdim=True).clamp_min(_LEAST) / 127
        whole = torch.round(weight / scale)
        self.register_buffer("weight", whole.to(torch.int8).T)
        self.register_buffer("scale", scale.squeeze(1))
        self.register_buffer("sums", whole.sum(dim=1))
        self.bias = None if layer.bias is None else layer.bias.detach().float()
        self._last = [None] if last is None else last

    def forward(self, values: Tensor) -> Tensor:
        """Return ``[..., out]`` of ``[..., in]``, in the input's number format."""
        whole, scales, middle = self._whole(values)
        made = torch._int_mm(whole, self.weight).float().mul_(scales).addcmul_(middle, self.sums)
        made = (
            made * self.scale if self.bias is None else torch.addcmul(self.bias, made, self.scale)
        )
        return made.view(*values.shape[:-1], self.out_features).to(values.dtype)

    def _whole(self, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return ``[N, in]`` int8, and ``[N, 1]`` what 1 stands for and what 0 stands for."""
        last = self._last[0]
        if last is not None and last[0]() is values and last[1] == values._version:
            made: tuple[Tensor, Tensor, Tensor] = last[2]
            return made
        rows = values.reshape(-1, self.in_features).float()
        low, high = (extreme(dim=1, keepdim=True) for extreme in (rows.amin, rows.amax))
        scales = ((high - low) / 255).clamp_min(_LEAST)
        middle = low + 128 * scales
        whole = torch.round((rows - middle) / scales).to(torch.int8)
        self._last[0] = ref(values), values._version, (whole, scales, middle)
        return whole, scales, middle


def to_int8(model: nn.Module, device: torch.device) -> int:
    """Put linear layers in int8 into a model, in the place of its own; return how many.

    Raises:
        CseError: If the device has no instructions for int8.
    """
    if device.type != "cpu":
        raise CseError("runs on processors only", where=_WHERE, value="int8",
                       hint=f"use bf16 on {device.type}, or --device cpu")  # fmt: skip
    there = torch.cpu.get_capabilities()
    if not any(there.get(name) for name in INSTRUCTIONS):
        what = f"this processor has none of {', '.join(INSTRUCTIONS)}: fp32 is faster"
        raise CseError(what, where=_WHERE, value="int8", hint="use fp32")
    layers = [name for name, module in model.named_modules() if type(module) is nn.Linear]
    last: list[Any] = [None]
    for name in layers:
        model.set_submodule(name, Int8Linear(cast(nn.Linear, model.get_submodule(name)), last))
    return len(layers)
