"""Load a saved, plain or sentence-transformers model and encode texts with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from cse_core.encoders.encoder import PackedEncoder
from cse_core.encoders.pretrained import check_finite
from cse_core.errors import CseError
from cse_core.files import MANIFEST, file_text
from cse_core.models.part_factory import PartFactory
from cse_core.models.sentence_encoder import SentenceEncoder
from cse_core.parts import Part
from cse_core.recipes.composition import PlannedPart
from cse_core.recipes.model_facts import resolve_model
from cse_core.records import HeadSpec, RowPoolerSpec, SliceSpec
from cse_core.registry.plugin_info import TOOLKIT
from cse_core.registry.registry import Registry
from cse_core.runtime.device import Precision, resolve_device, resolve_precision
from cse_core.runtime.model_files import HEADS, model_folder

Made = TypeVar("Made")
_POOLING = {"cls_token": "cls", "mean_tokens": "mean"}
_AGAIN = "copy the whole model folder again"


def _of_this_version(number: object) -> object:
    if number != 1 or number is True:
        raise ValueError("another version of cse wrote it: update cse-toolkit")
    return number


class Stage(BaseModel):
    """A part of a model as its folder names it; ``folder`` is that of a Dense module."""

    use: str
    name: str = ""
    distribution: str | None = None
    options: dict[str, Any] = {}
    folder: Path | None = None


class Manifest(BaseModel):
    """What ``cse.json`` says of how to encode."""

    format: Annotated[object, AfterValidator(_of_this_version)] = 1
    max_length: int = Field(ge=2, le=10**9, strict=True)
    row: Stage
    heads: tuple[Stage, ...] = ()
    slice: Stage | None = None


class Module(BaseModel):
    """A line of sentence-transformers' ``modules.json``."""

    type: str
    path: str


class Dense(BaseModel):
    """A head of sentence-transformers."""

    out_features: int = Field(ge=1, le=2**16, strict=True)
    bias: Literal[True] = True
    activation_function: str = "Tanh"


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
        CseError: If the model is missing or damaged.
    """
    path = resolve_model(name, registry)
    where = resolve_device(device)
    folder = Path(path)
    encoder, tokenizer = PackedEncoder.load_with_tokenizer(path, seed=0)
    encoder.to(where).eval()
    manifest = _manifest(folder, encoder)
    if pooling is not None:
        manifest = manifest.model_copy(update={"row": Stage(use=pooling), "heads": ()})
    factory = PartFactory(encoder, tokenizer, where)
    stages = [manifest.row, *manifest.heads]
    longest = max_length or manifest.max_length
    if manifest.slice is None:
        longest = min(longest, encoder.max_positions)
    else:
        stages.append(manifest.slice)
    planned = [_planned(registry, choice, folder) for choice in stages]
    kinds = (RowPoolerSpec, *(HeadSpec for _ in manifest.heads), SliceSpec)
    fit = all(isinstance(part.spec, kind) for part, kind in zip(planned, kinds, strict=False))
    if not fit or len({part.path for part in planned}) < len(planned):
        what = "names an unknown pooler, head or slicer, or the same one twice"
        raise CseError(what, where=str(folder / MANIFEST), hint=_AGAIN)
    sentence_encoder = factory.sentence_encoder(planned, longest)
    _load_weights(folder, zip(stages, factory.made.values(), strict=True))
    heads = [f"head {name}" for name in sentence_encoder.heads]
    words = ", ".join([f"pooling {manifest.row.use}", *heads])
    return SentenceModel(sentence_encoder, name, words, where, resolve_precision(precision, where))


def _planned(registry: Registry, choice: Stage, folder: Path) -> PlannedPart:
    """Return a part of a model as its folder names it."""
    name = choice.use
    if choice.distribution and choice.distribution != TOOLKIT:
        name = f"{choice.distribution}/{name}"
    found = registry.find("pool", name, where=str(folder))
    options = _checked(lambda: found.spec.options.model_validate(choice.options), folder / MANIFEST)
    return PlannedPart.of(found, options, choice.name or name)


def _manifest(folder: Path, encoder: PackedEncoder) -> Manifest:
    """Return how to encode with a folder: cse's own file, sentence-transformers', or mean."""
    longest = min(encoder.max_positions, 10**9)
    file = folder / MANIFEST
    if file.is_file():
        return _checked(lambda: Manifest.model_validate(_read(file)), file)
    row, heads = Stage(use="mean"), []
    file = folder / "modules.json"
    if not file.is_file():
        return Manifest(max_length=longest, row=row)
    longest = min(longest, _saved_length(folder) or longest)
    modules = _checked(lambda: TypeAdapter(list[Module]).validate_python(_read(file)), file)
    for module in modules:
        kind, path = module.type.rpartition(".")[2], folder / module.path
        if kind == "Pooling":
            row = Stage(use=_pooling(_read(path / "config.json"), folder))
        elif kind == "Dense":
            heads.append(_dense(_read(path / "config.json"), path))
        elif kind not in ("Transformer", "Normalize", "Dropout"):
            what = f"has an unknown module {kind}"
            hint = "encode with sentence-transformers instead"
            raise CseError(what, where="model", value=str(folder), hint=hint)
    return Manifest(max_length=longest, row=row, heads=tuple(heads))


def _checked(read: Callable[[], Made], file: Path) -> Made:
    """Return what a file says, checked; what is malformed raises a ``CseError``."""
    try:
        return read()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        what = f"is malformed: {place + ': ' if place else ''}{first['msg']}"
        raise CseError(what, where=str(file), value=first["input"], hint=_AGAIN) from None


def _saved_length(folder: Path) -> int | None:
    """Return how many tokens a row has, from where sentence-transformers keeps it.

    Older versions keep it in a file of their own, newer ones (6.2 does) with the tokenizer.
    """
    inner = model_folder(folder, str(folder))
    files = {"sentence_bert_config": "max_seq_length", "tokenizer_config": "model_max_length"}
    for file, name in files.items():
        path = inner / f"{file}.json"
        settings = _read(path) if path.is_file() else {}
        length = settings.get(name) if isinstance(settings, dict) else "no table"
        if isinstance(length, int | float) and length >= 2:
            return int(min(length, 10**9))
        if length:
            what = f"{name} must be a number of tokens of at least 2"
            raise CseError(what, where=str(path), value=length, hint=_AGAIN)
    return None


def _pooling(config: Any, folder: Path) -> str:
    config = config if isinstance(config, dict) else {}
    found = [m for flag, m in _POOLING.items() if config.get(f"pooling_mode_{flag}")]
    if isinstance(mode := config.get("pooling_mode"), str):
        found = [mode]
    if len(found) != 1 or found[0] not in _POOLING.values():
        what = "its sentence-transformers pooling is neither cls nor mean"
        hint = "name one of cse's with --pooling"
        raise CseError(what, where="model", value=str(folder), hint=hint)
    return found[0]


def _dense(config: Any, path: Path) -> Stage:
    dense = _checked(lambda: Dense.model_validate(config), path / "config.json")
    names = {"Tanh": "tanh", "Identity": "none", "ReLU": "relu", "GELU": "gelu"}
    kind = names.get(dense.activation_function.rpartition(".")[2])
    if kind is None:
        raise CseError("its Dense layer is of an unknown kind", where="model", value=str(path))
    options = {"dimension": dense.out_features, "activation": kind, "keep": "always"}
    return Stage(use="mlp", name=path.name, options=options, folder=path)


def _load_weights(folder: Path, made: Iterable[tuple[Stage, Part]]) -> None:
    own = _read(folder / HEADS) if (folder / HEADS).is_file() else {}
    for choice, part in made:
        if not isinstance(part, nn.Module):
            continue
        name = choice.name or choice.use
        held, start, to = own, f"{name}.", ""
        if choice.folder is not None:
            held, start, to = _read(choice.folder / "model.safetensors"), "linear.", "stages.0."
        state = {to + k[len(start) :]: v for k, v in held.items() if k.startswith(start)}
        check_finite(state, str(folder))
        try:
            part.load_state_dict(state)
        except RuntimeError:
            what = f"the weights of its pooler or head {name} are missing or do not fit"
            raise CseError(what, where="model", value=str(folder), hint=_AGAIN) from None
        part.eval()


def _read(path: Path) -> Any:
    """Return the tensors of a safetensors file, or what a JSON file holds."""
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        return json.loads(file_text(path))
    except (OSError, SafetensorError, ValueError, RecursionError):
        raise CseError("cannot be read", where="model", value=str(path), hint=_AGAIN) from None
