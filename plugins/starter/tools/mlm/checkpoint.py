"""Checkpoints of a pre-training run: one file, written beside and renamed, complete or absent."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from cse_core.errors import CseError
from mlm.model import MaskedLanguageModel

ADAM_STATE = ("step", "exp_avg", "exp_avg_sq")


@dataclass
class Progress:
    """Where a run stands; all random draws follow from the seed, the epoch and the step.

    Attributes:
        step: Optimiser steps done.
        tokens: Positions trained on, special tokens included.
        seconds: Wall time used, over all resumed parts.
        epoch: Passes over the texts that are complete.
        batch: Batches of the current pass that are done.
    """

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    epoch: int = 0
    batch: int = 0


def save_checkpoint(
    path: Path,
    model: MaskedLanguageModel,
    optimizer: torch.optim.AdamW,
    progress: Progress,
    settings: dict[str, Any],
) -> None:
    """Write weights, optimiser state, place and settings to `path`."""
    tensors = {}
    for name, parameter in zip(model.names, model.weights, strict=True):
        tensors[f"weight/{name}"] = parameter.detach().cpu()
        for key in ADAM_STATE:
            tensors[f"{key}/{name}"] = optimizer.state[parameter][key].detach().cpu()
    beside = path.with_suffix(".new")
    about = {"progress": json.dumps(asdict(progress)), "settings": json.dumps(settings)}
    save_file(tensors, beside, metadata=about)
    os.replace(beside, path)


def load_checkpoint(
    path: Path,
    model: MaskedLanguageModel,
    optimizer: torch.optim.AdamW,
    settings: dict[str, Any],
) -> Progress:
    """Restore what `save_checkpoint` wrote and return the place.

    Raises:
        CseError: The checkpoint is damaged, or of a run with other settings.
    """
    try:
        stored = safe_open(path, framework="pt")
    except SafetensorError as error:
        raise CseError(
            f"damaged checkpoint ({error})", where=str(path), hint="remove it to start again"
        ) from error
    with stored as file:
        about = file.metadata()
        old = json.loads(about["settings"])
        for key, value in settings.items():
            if old.get(key) != value:
                raise CseError(
                    f"the run in this folder has {key} = {old.get(key)!r}",
                    where=str(path),
                    value=value,
                    hint="give the options it was started with, or another --out",
                )
        device = next(model.parameters()).device
        for name, parameter in zip(model.names, model.weights, strict=True):
            parameter.data.copy_(file.get_tensor(f"weight/{name}"))
            state = {key: file.get_tensor(f"{key}/{name}").to(device) for key in ADAM_STATE}
            optimizer.state[parameter] = state
    return Progress(**json.loads(about["progress"]))
