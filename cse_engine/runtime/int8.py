"""Linear layers in int8, for encoding on a processor with instructions for it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from cse_core.errors import CseError
from cse_engine.runtime.device import Precision

INSTRUCTIONS = ("avx512_vnni", "avx_vnni", "amx_int8")
"""Any of these multiplies int8 faster than fp32."""
INT8 = Precision("int8", None, "it was asked for")
_WHERE = "train.precision"


class Int8Linear(nn.Module):
    """A linear layer whose weights and inputs have 8 bits.

    Weights have a scale for each output, inputs one for each token (as LLM.int8, Dettmers et al.
    2022, Section 3.1, without its outliers), so that a text's vector does not depend on the texts
    beside it. Sums are exact, in int32.

    Args:
        layer: The layer, which stays as it is.
    """

    weight: Tensor
    scale: Tensor

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        weight = layer.weight.detach().float()
        scale = _scales(weight)
        self.register_buffer("weight", torch.round(weight / scale).to(torch.int8).T)
        self.register_buffer("scale", scale.squeeze(1))
        self.bias = None if layer.bias is None else layer.bias.detach().float()

    def forward(self, values: Tensor) -> Tensor:
        """Return ``[..., out]`` of ``[..., in]``, in the input's number format."""
        rows = values.reshape(-1, self.in_features).float()
        scales = _scales(rows)
        whole = torch.round(rows / scales).to(torch.int8)
        sums = torch._int_mm(whole, self.weight).float().mul_(scales)
        made = (
            sums * self.scale if self.bias is None else torch.addcmul(self.bias, sums, self.scale)
        )
        return made.view(*values.shape[:-1], self.out_features).to(values.dtype)


def _scales(rows: Tensor) -> Tensor:
    """Return ``[N, 1]`` what 1 in int8 stands for in each row of ``[N, D]``."""
    return rows.abs().amax(dim=1, keepdim=True).clamp_min(1e-12) / 127


def to_int8(model: nn.Module, device: torch.device) -> int:
    """Put linear layers in int8 into a model, in the place of its own; return how many.

    Raises:
        CseError: If the device is no processor, or one without instructions for int8.
    """
    if device.type != "cpu":
        raise CseError("is for processors", where=_WHERE, value="int8",
                       hint=f"use bf16 on {device.type}, or --device cpu")  # fmt: skip
    there = torch.cpu.get_capabilities()
    if not any(there.get(name) for name in INSTRUCTIONS):
        what = f"this processor has none of {', '.join(INSTRUCTIONS)}: fp32 is faster"
        raise CseError(what, where=_WHERE, value="int8", hint="use fp32")
    layers = [name for name, module in model.named_modules() if type(module) is nn.Linear]
    for name in layers:
        model.set_submodule(name, Int8Linear(model.get_submodule(name)))  # type: ignore[arg-type]
    return len(layers)
