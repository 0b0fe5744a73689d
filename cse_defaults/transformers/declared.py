"""What sentence-transformers' files of a model say of how it encodes."""

from __future__ import annotations

import re
import string
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from cse_core.errors import CseError
from cse_core.files import read_json
from cse_core.model_card import ACTIVATIONS, AGAIN, Declared, checked, checked_card
from cse_defaults.transformers.model_files import model_folder, read_modules

_FLAG = "pooling_mode_"
_ARGUMENTS = (
    *("model_args", "model_kwargs", "config_args", "config_kwargs", "tokenizer_args"),
    *("processor_kwargs", "processing_kwargs", "query_length", "document_length"),
)
"""What sentence-transformers gives to its encoder and tokenizer."""
_HARMLESS = (
    *("add_pooling_layer", "dtype", "torch_dtype", "attn_implementation", "trust_remote_code"),
    *("use_fast", "padding_side", "padding", "truncation", "clean_up_tokenization_spaces"),
    *("use_safetensors", "low_cpu_mem_usage", "device_map", "reference_compile", "revision"),
    *("cache_dir", "local_files_only", "token"),
)
_MODES = {"cls": "cls", "mean": "mean", "lasttoken": "last-token"}
"""Modes of sentence-transformers' pooling, and the row poolers that are equal to them."""


class _Dense(BaseModel):
    out_features: int = Field(ge=1, le=2**16, strict=True)
    bias: bool = True
    activation_function: str = "torch.nn.modules.activation.Tanh"
    module_input_name: Literal["sentence_embedding", "token_embeddings"] = "sentence_embedding"
    module_output_name: Literal["sentence_embedding", "token_embeddings", None] = None
    use_residual: Literal[False] = False

    @model_validator(mode="after")
    def _changes_what_it_reads(self) -> _Dense:
        if self.module_output_name not in (None, self.module_input_name):
            raise ValueError(f"reads {self.module_input_name}, writes {self.module_output_name}")
        return self


class _Mask(BaseModel):
    """Which tokens of a model of several vectors are scored."""

    skiplist_words: tuple[str, ...] = ()
    skiplist_tasks: tuple[Literal["document"]] = ("document",)
    keep_only_token_ids: None = None

    @model_validator(mode="after")
    def _skips_punctuation_or_nothing(self) -> _Mask:
        if {*self.skiplist_words} not in (set[str](), {*string.punctuation}):
            raise ValueError("skips other tokens than all signs of punctuation")
        return self


def declared(path: Path, name: str) -> Declared:
    """Read the encoding settings from the sentence-transformers files of a model's folder.

    A folder without them has its tokenizer's length.
    """
    encoder = model_folder(path, name)
    roots = (path, path / "model", encoder)
    root = next((above for above in roots if (above / "modules.json").is_file()), encoder)
    modules = read_modules(root, name)
    file = root / "config_sentence_transformers.json"
    values: dict[str, Any] = {"max_length": _length(encoder, name, bool(modules))}
    files = [file, *sorted(encoder.glob("sentence_*_config.json"))] if modules else []
    for source in files:
        values |= read_json(source, name, kind=dict) if source.is_file() else {}
        _check_arguments(values, source)
    rows = [(kind, folder / "config.json") for kind, folder in modules]
    if any(kind == "MultiVectorMask" for kind, _ in rows):
        rows = _without_tokens(rows, values, name)
    for place, (kind, config) in enumerate(rows):
        if kind == "Pooling":
            values |= _pooling(read_json(config, name, kind=dict), name)
        elif kind == "Dense":
            values.setdefault("heads", []).append(_dense(config, name))
        elif kind == "Normalize":
            values["normalize"] = True
            if {"Pooling", "Dense"} & {after for after, _ in rows[place:]}:
                what = "has a Normalize module before its last layer, which cse cannot do"
                hint = "encode with sentence-transformers"
                raise CseError(what, where="model.name", value=name, hint=hint)
    return checked_card(values, file)


def _without_tokens(
    modules: list[tuple[str, Path]], values: dict[str, Any], name: str
) -> list[tuple[str, Path]]:
    """Read the modules that change vectors of tokens into the card, and return the others.

    Similarities of models of several vectors do not compare vectors of rows.
    """
    others, skipped = [], False
    for kind, config in modules:
        given = read_json(config, name, kind=dict) if config.is_file() else {}
        if kind == "MultiVectorMask":
            skipped = skipped or bool(checked(_Mask, given, config).skiplist_words)
        elif given.get("module_input_name") != "token_embeddings":
            others.append((kind, config))
        elif kind == "Dense":
            values.setdefault("heads", []).append(_dense(config, name))
    options = {"skip": "punctuation" if skipped else "none"}
    values["several"] = [{"use": "token-vectors", "options": options}]
    for key, late in (("model_type", "MultiVectorEncoder"), ("similarity_fn_name", "maxsim")):
        if values.get(key) in (late, f"mean{late}"):
            del values[key]
    return others


def _check_arguments(values: dict[str, Any], file: Path) -> None:
    """Refuse arguments by which sentence-transformers computes other vectors."""
    for key in _ARGUMENTS:
        given = values.get(key) or {}
        named = given if isinstance(given, dict) else {"": given}
        text = named.get("text")  # of processing_kwargs, by kind of input
        named = text if isinstance(text, dict) else named
        for name, value in named.items():
            if name not in _HARMLESS and value not in (None, {}):
                what = f"says {key + ('.' if name else '')}{name}, which cse does not have"
                hint = "encode with sentence-transformers"
                raise CseError(what, where=str(file), value=value, hint=hint)


def _length(encoder: Path, name: str, saved: bool) -> int | None:
    """Read the length of a row in tokens from where sentence-transformers keeps it.

    Older versions keep it in a file of their own, newer ones (6.2 does) with the tokenizer.
    """
    files = [*sorted(encoder.glob("sentence_*_config.json"))] if saved else []
    for path in (*files, encoder / "tokenizer_config.json"):
        key = "max_seq_length" if path in files else "model_max_length"
        length = read_json(path, name, kind=dict).get(key) if path.is_file() else None
        if isinstance(length, int | float) and length >= 2:
            return int(min(length, 10**9))
        if length is not None:
            what = f"{key} must be a number of tokens of at least 2"
            raise CseError(what, where=str(path), value=length, hint=AGAIN)
    return None


def _pooling(config: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the row pooler of a Pooling module."""
    modes = config.get("pooling_mode")
    if modes is None:  # before version 6 a flag for each: pooling_mode_mean_tokens
        flags = [key.removeprefix(_FLAG) for key in config if key.startswith(_FLAG) and config[key]]
        modes = [re.sub("_tokens?$", "", flag) for flag in flags] or ["mean"]
    modes = modes if isinstance(modes, list) else [modes]
    if len(modes) != 1 or modes[0] not in _MODES:
        what = f"pools its tokens by {' and '.join(map(str, modes))}, which cse does not have"
        hint = "name one of cse's with --pooling"
        raise CseError(what, where="model.name", value=name, hint=hint)
    whole = config.get("include_prompt", True)
    use, options = _MODES[modes[0]], {}
    if use == "mean" and whole is False:
        options = {"include_prompt": False}
    elif use == "last-token":
        options = {"end": False}  # what is last is for its tokenizer to say
    return {"row": {"use": use, "options": options}, "include_prompt": whole}


def _dense(file: Path, name: str) -> dict[str, Any]:
    """Return the head of a Dense module."""
    dense = checked(_Dense, read_json(file, name, kind=dict), file)
    kind = dense.activation_function.rpartition(".")[2]
    names = {torch: ours for ours, torch in ACTIVATIONS.items()}
    if kind not in names or not dense.activation_function.startswith("torch.nn."):
        what, hint = "names a function that cse does not have", "encode with sentence-transformers"
        raise CseError(what, where=str(file), value=dense.activation_function, hint=hint)
    options = {"dimension": dense.out_features, "activation": names[kind], "bias": dense.bias}
    if dense.module_input_name == "token_embeddings":
        options["level"] = "token"
    return {"use": "mlp", "name": file.parent.name, "options": {**options, "keep": "always"}}
