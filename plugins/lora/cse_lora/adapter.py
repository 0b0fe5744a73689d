"""The encoder is frozen; low-rank matrices beside its linear layers are trained, through peft."""

from __future__ import annotations

import copy
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from torch import nn

from cse_core.errors import CseError, did_you_mean
from cse_core.parts import Adapter, Setup
from cse_lora.options import LoraOptions

if TYPE_CHECKING:
    from transformers import PreTrainedModel

NAME = "default"
"""What peft calls the one adapter of a model."""
ALL = "all-linear"


class Lora(Adapter):
    """Low-rank matrices A ``[r, in]``, drawn from the seed, and B ``[out, r]``, zero at the start.

    A layer ``W x`` becomes ``W x + alpha / r * B A x``: at the start the encoder is as it was.

    Raises:
        CseError: If peft is not installed, or the encoder has no such layers.
    """

    def __init__(self, options: LoraOptions, setup: Setup) -> None:
        self.options = options
        self._seeded = partial(setup.seeded, "init")  # peft draws from the global generators
        try:
            import peft
        except ImportError as error:
            raise CseError(
                f"the adapter lora needs peft: {error}",
                where=f"adapter.{setup.name}",
                hint="pip install 'peft>=0.19'",
            ) from None
        self._peft = peft

    def wrap(self, model: PreTrainedModel) -> None:
        """Freeze the encoder and put matrices beside its layers."""
        options = self.options
        config = self._peft.LoraConfig(
            task_type="FEATURE_EXTRACTION",
            r=options.rank,
            lora_alpha=cast(int, options.alpha),
            lora_dropout=options.dropout,
            target_modules=self._targets(model),
            use_rslora=options.rslora,
        )
        with self._seeded(), warnings.catch_warnings():
            # Of transformers, about what peft still reads of it.
            warnings.simplefilter("ignore", FutureWarning)
            try:
                self._adapted = self._peft.get_peft_model(model, config)
            except ValueError as error:  # no targets are known for the family
                raise self._wrong(model, " ".join(str(error).split()).split(". ")[0]) from error

    def merged(self, model: PreTrainedModel) -> PreTrainedModel:
        """Return a copy in which the matrices are part of the layers' weights."""
        merged = copy.deepcopy(self._adapted).merge_and_unload()
        return cast("PreTrainedModel", merged)

    def save(self, model: PreTrainedModel, folder: Path, base: str) -> None:
        """Write adapter_config.json and adapter_model.safetensors, as peft reads them."""
        from safetensors.torch import save_file

        folder.mkdir()
        config = copy.deepcopy(self._adapted.peft_config[NAME])
        config.inference_mode = True
        if isinstance(config.target_modules, set):
            config.target_modules = sorted(config.target_modules)  # the same file in every run
        config.base_model_name_or_path = base
        config.save_pretrained(str(folder))
        state = self._peft.get_peft_model_state_dict(self._adapted, adapter_name=NAME)
        tensors = {name: value.detach().cpu().contiguous() for name, value in state.items()}
        save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})

    def _targets(self, model: PreTrainedModel) -> str | list[str] | None:
        """Return the names of the layers as peft takes them; each is that of one at least."""
        wanted = self.options.targets
        if wanted is None or wanted == (ALL,):
            return ALL if wanted else None
        layers = {
            name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)
        }
        short = {name.rpartition(".")[2] for name in layers}
        for name in wanted:
            if not any(path == name or path.endswith(f".{name}") for path in layers):
                hint = did_you_mean(name, [*sorted(short), ALL])
                what = f"{type(model).__name__} has no linear layer of this name"
                raise CseError(what, where=f"{self.path}.targets", value=name, hint=hint)
        return list(wanted)

    def _wrong(self, model: PreTrainedModel, said: str) -> CseError:
        linear = (n for n, module in model.named_modules() if isinstance(module, nn.Linear))
        names = ", ".join(sorted({name.rpartition(".")[2] for name in linear}))
        what = f"{type(model).__name__} cannot be adapted: {said}"
        return CseError(what, where=self.path, hint=f"name layers in targets: {names}, or {ALL}")
