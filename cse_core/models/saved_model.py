"""Load a saved, plain or sentence-transformers model and encode texts with it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from cse_core.encoders.encoder import PackedEncoder
from cse_core.encoders.pretrained import load_tokenizer
from cse_core.errors import CseError
from cse_core.models.part_factory import PartFactory
from cse_core.models.sentence_encoder import SentenceEncoder
from cse_core.parts import Part
from cse_core.recipes.composition import PlannedPart
from cse_core.recipes.model_facts import resolve_model
from cse_core.registry.registry import Registry
from cse_core.runtime.device import Precision, resolve_device, resolve_precision
from cse_core.runtime.model_files import HEADS, MANIFEST, model_folder
from cse_core.tokenization.tokenizer import TextTokenizer

_POOLING = {"cls_token": "cls", "mean_tokens": "mean"}


@dataclass
class SentenceModel:
    """A model that encodes texts, its name as it was asked for, and its pooling in words."""

    sentence_encoder: SentenceEncoder
    name: str
    description: str
    device: torch.device
    precision: Precision

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return ``[N, D]`` vectors, not normalised."""
        with self.precision.autocast():
            return self.sentence_encoder.encode(texts, self.device).numpy()


def load(
    name: str,
    registry: Registry,
    *,
    pooling: str | None = None,
    max_length: int | None = None,
    device: str = "auto",
    precision: str = "fp32",
) -> SentenceModel:
    """Load a model with what its folder says of pooling and heads.

    ``name`` is a run's or model's folder, an installed encoder or a model of the hub; ``pooling``
    (mean where it says none) and ``max_length`` replace what the model says; ``device`` and
    ``precision`` are as in ``train``.

    Raises:
        CseError: If there is no such model or it is damaged.
    """
    path = resolve_model(name, registry)
    where = resolve_device(device)
    folder = Path(path)
    encoder = PackedEncoder.load(path, seed=0).to(where)
    encoder.eval()
    tokenizer = TextTokenizer(load_tokenizer(path))
    manifest = _manifest(folder, encoder)
    if pooling is not None:
        manifest = {**manifest, "row": {"use": pooling, "options": {}}, "heads": []}
    factory = PartFactory(encoder, tokenizer, where)
    stages = [manifest["row"], *manifest["heads"]]
    longest = max_length or manifest["max_length"]
    if manifest.get("slice") is None:
        longest = min(longest, encoder.max_positions)
    else:
        stages.append(manifest["slice"])
    planned = [_planned(registry, choice) for choice in stages]
    sentence_encoder = factory.sentence_encoder(planned, longest)
    _load_weights(folder, zip(stages, factory.made.values(), strict=True))
    heads = [f"head {name}" for name in sentence_encoder.heads]
    words = ", ".join([f"pooling {manifest['row']['use']}", *heads])
    return SentenceModel(sentence_encoder, name, words, where, resolve_precision(precision, where))


def _planned(registry: Registry, choice: dict[str, Any]) -> PlannedPart:
    """Return a part of a model as its folder names it."""
    name, distribution = choice["use"], choice.get("distribution")
    if distribution and distribution != "cse-toolkit":
        name = f"{distribution}/{name}"
    found = registry.find("pool", name)
    options = found.spec.options.model_validate(choice["options"])
    return PlannedPart.of(found, options, choice.get("name", name))


def _manifest(folder: Path, encoder: PackedEncoder) -> dict[str, Any]:
    """Return how to encode with a folder: cse's own file, sentence-transformers', or mean."""
    longest = encoder.max_positions
    plain: dict[str, Any] = {
        "max_length": longest,
        "row": {"use": "mean", "options": {}},
        "heads": [],
        "slice": None,
    }
    if (folder / MANIFEST).is_file():
        return cast(dict[str, Any], _read(folder / MANIFEST))
    if not (folder / "modules.json").is_file():
        return plain
    plain["max_length"] = min(longest, _saved_length(folder) or longest)
    for module in cast(list[dict[str, Any]], _read(folder / "modules.json")):
        kind, path = module["type"].rpartition(".")[2], folder / module["path"]
        if kind == "Pooling":
            plain["row"]["use"] = _pooling(_read(path / "config.json"), folder)
        elif kind == "Dense":
            plain["heads"].append(_dense(_read(path / "config.json"), path))
        elif kind not in ("Transformer", "Normalize", "Dropout"):
            raise CseError(
                f"its module {kind} is not known",
                where="model",
                value=str(folder),
                hint="encode with sentence-transformers instead",
            )
    return plain


def _saved_length(folder: Path) -> int | None:
    """Return how many tokens a row has, from where sentence-transformers keeps it.

    Older versions keep it in a file of their own, newer ones (6.2 does) with the tokenizer.
    """
    inner = model_folder(folder, str(folder))
    files = {"sentence_bert_config": "max_seq_length", "tokenizer_config": "model_max_length"}
    for file, name in files.items():
        path = inner / f"{file}.json"
        if path.is_file() and (length := _read(path).get(name)):
            return int(length)
    return None


def _pooling(config: dict[str, Any], folder: Path) -> str:
    found = [m for flag, m in _POOLING.items() if config.get(f"pooling_mode_{flag}")]
    if isinstance(mode := config.get("pooling_mode"), str):
        found = [mode]
    if len(found) != 1 or found[0] not in _POOLING.values():
        raise CseError(
            "its sentence-transformers pooling is neither cls nor mean",
            where="model",
            value=str(folder),
            hint="name one of cse's with --pooling",
        )
    return found[0]


def _dense(config: dict[str, Any], path: Path) -> dict[str, Any]:
    activation = config.get("activation_function", "torch.nn.modules.activation.Tanh")
    names = {"Tanh": "tanh", "Identity": "none", "ReLU": "relu", "GELU": "gelu"}
    kind = names.get(activation.rpartition(".")[2])
    if kind is None or not config.get("bias", True):
        raise CseError("its Dense layer is of an unknown kind", where="model", value=str(path))
    return {
        "use": "mlp",
        "name": path.name,
        "options": {"dimension": config["out_features"], "activation": kind, "keep": "always"},
        "folder": str(path),
    }


def _load_weights(folder: Path, made: Iterable[tuple[dict[str, Any], Part]]) -> None:
    own = _read(folder / HEADS) if (folder / HEADS).is_file() else {}
    for choice, part in made:
        if not isinstance(part, nn.Module):
            continue
        name = choice.get("name", choice["use"])
        if "folder" in choice:
            dense = _read(Path(choice["folder"]) / "model.safetensors")
            state = {f"stages.0.{key}": dense[f"linear.{key}"] for key in ("weight", "bias")}
        else:
            start = f"{name}."
            state = {k[len(start) :]: v for k, v in own.items() if k.startswith(start)}
        try:
            part.load_state_dict(state)
        except RuntimeError:
            raise CseError(
                f"the weights of its pooler or head {name} are missing or do not fit",
                where="model",
                value=str(folder),
                hint="copy the whole model folder again",
            ) from None
        part.eval()


def _read(path: Path) -> Any:
    """Return the tensors of a safetensors file, or what a JSON file holds."""
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, SafetensorError, UnicodeDecodeError, json.JSONDecodeError):
        hint = "copy the whole model folder again"
        raise CseError("cannot be read", where="model", value=str(path), hint=hint) from None
