"""Weights of models in files, with a line for whatever is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, float32

from cse_core.errors import CseError
from cse_core.model_card import AGAIN


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file, none where it is missing.

    Raises:
        CseError: If it is damaged, or no regular file.
    """
    if path.exists() and not path.is_file():
        raise CseError("is not a regular file", where="model.name", value=str(path))
    try:
        return load_file(path) if path.exists() else {}
    except (OSError, SafetensorError):
        raise CseError("cannot be read", where="model.name", value=str(path), hint=AGAIN) from None


def check_finite(tensors: Mapping[str, Tensor], name: str) -> None:
    """Refuse weights with NaN or infinity among them; ``name`` is the model's."""
    for key, tensor in tensors.items():
        if not math.isfinite(float(tensor.detach().sum(dtype=float32))):
            what = f"the weights {key} are not all finite numbers"
            hint = "copy the whole model folder again, or use earlier weights"
            raise CseError(what, where="model.name", value=name, hint=hint)
