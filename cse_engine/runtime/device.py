"""Which device and which number format to train in, by what the machine is fast at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial

import torch

from cse_core.errors import CseError

DTYPES = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}
"""Number formats, by what autocast casts to."""


@dataclass(frozen=True)
class Precision:
    """The number format of matrix products; weights, losses and optimiser stay in fp32.

    ``dtype`` is what autocast casts to, None for fp32; ``why`` is a clause for the run's record.
    """

    name: str
    dtype: torch.dtype | None
    why: str
    device_type: str = "cpu"

    def scaler(self) -> torch.amp.GradScaler | None:
        """Make what scales the loss up so that small gradients of fp16 are not lost; else None.

        It halves the scale where a gradient overflows, and leaves that step out.
        """
        return torch.amp.GradScaler(self.device_type) if self.dtype is torch.float16 else None

    def autocast(self) -> torch.autocast:
        """Give the context in which the forward pass runs."""
        return torch.autocast(self.device_type, dtype=self.dtype, enabled=self.dtype is not None)


def resolve_precision(name: str, device: torch.device) -> Precision:
    """Return the number format called ``name``, or for ``auto`` the fastest safe one.

    ``auto`` goes only by the hardware: bf16 on a GPU that computes in it and on a CPU with bf16
    instructions (AVX512-BF16 or AMX), else fp32.

    Raises:
        CseError: If the format is unknown.
    """
    kind = device.type
    fast = fast_bf16(device) if name in ("auto", "bf16") else None
    why = "it was asked for"
    if name == "auto":
        name = "bf16" if fast else "fp32"
        why = f"{fast} computes bf16 fast" if fast else f"this {kind} has no fast bf16"
    elif name == "bf16" and not fast:
        why += f", though this {kind} has no fast bf16: expect no gain"
    elif name not in DTYPES:
        hint = "known: " + ", ".join(["auto", *DTYPES])
        raise CseError("no such precision", where="train.precision", value=name, hint=hint)
    return Precision(name, DTYPES[name], why, kind)


def fast_bf16(device: torch.device) -> str | None:
    """Return the chip or feature that makes bf16 fast on the device, None if nothing does."""
    if device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0):
        return torch.cuda.get_device_name(device)
    # In order of the alphabet, which is that of their speed.
    return min(cpu_flags(), default=None) if device.type == "cpu" else None


@cache
def cpu_flags() -> frozenset[str]:
    """Return the bf16 instruction sets of this CPU."""
    capabilities = torch.cpu.get_capabilities()
    return frozenset(flag for flag in ("amx_bf16", "avx512_bf16") if capabilities.get(flag))


def resolve_device(name: str = "auto") -> torch.device:
    """Return the device called ``name``, or for ``auto`` the first GPU, else the CPU.

    Apple's ``mps`` is taken only when it is named.

    Raises:
        CseError: If this machine has no such device.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    refused = partial(CseError, where="train.device", value=name)
    try:
        device = torch.device(name)
        if device.type not in ("cpu", "cuda", "mps") or (device.type == "cpu" and device.index):
            raise RuntimeError  # meta computes nothing, others were never tried
    except RuntimeError as error:
        raise refused("unknown device", hint="use auto, cpu or cuda") from error
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (device.index or 0) >= count:
            hint = f"use cuda:0 to cuda:{count - 1}" if count else "use auto or cpu"
            raise refused(f"there are {count} CUDA devices here", hint=hint)
    elif device.type == "mps" and not torch.backends.mps.is_available():
        raise refused("no such device on this machine", hint="use auto or cpu")
    return device
