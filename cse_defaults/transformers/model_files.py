"""The files of a saved model or run by which it is found and read; imports no torch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cse_core.errors import CseError
from cse_core.files import MANIFEST, RUN_FILE, read_json
from cse_core.model_card import WHOLE
from cse_core.run_info import RunInfo

JSON_FILES = ("config.json", "tokenizer_config.json", "tokenizer.json", "special_tokens_map.json")
"""Files of a model that tell its facts."""
MODULES = ("Transformer", "Pooling", "Dense", "Normalize", "Dropout", "MultiVectorMask")
"""Modules of sentence-transformers that cse has; the first one is the encoder."""
_OFFSET_POSITIONS = frozenset(
    {"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "data2vec-text", "longformer",
     "mpnet", "ibert", "roberta-prelayernorm", "xmod", "luke", "esm"}
)  # fmt: skip
"""Families whose positions start behind the padding token's id."""
DECODERS = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text")
"""Families that can read in either direction: causally, as they do by themselves, or not."""
DIRECTIONS = ("causal", "bidirectional")
_NO_TOKENS_OF_ITS_OWN = ("PreTrainedTokenizerFast", "TokenizersBackend")
"""Classes of tokenizers whose special tokens are those that the files name."""
_CONTINUES = ("ForCausalLM", "LMHeadModel", "DoubleHeadsModel")
"""Ends of the names of architectures that continue texts."""
_ONE_WAY = ("gpt2", "gpt_neo", "gpt_neox", "gptj", "opt", "bloom", "falcon", "phi", "phi3")
"""Further families of decoders, which read causally and in no other way."""


def model_folder(path: Path, name: str) -> Path:
    """Return the folder with the encoder's ``config.json``: itself, its ``model/``, or a module's.

    Refused is another kind of model of sentence-transformers, and an adapter in the encoder's place
    or beside it.
    """
    if not path.is_dir():
        hint = "name the folder that holds config.json"
        what = "is a file, not a model folder" if os.path.exists(path) else "no folder of this name"
        raise CseError(what, where="model.name", value=name, hint=hint)
    for root in (path, path / "model"):
        modules = read_modules(root, name)
        folder = modules[0][1] if modules else root
        folders = {entry for entry in (root, folder) if entry.is_dir()}
        paths = [entry for inside in folders for entry in inside.iterdir() if entry.exists()]
        if odd := [entry.name for entry in paths if not (entry.is_file() or entry.is_dir())]:
            what = f"{odd[0]} in it is a pipe, a socket or a device"
            raise CseError(what, where="model.name", value=name)
        whole = (folder / "config.json").is_file()
        if (folder / "adapter_config.json").is_file():
            what = "holds only a peft adapter, without the weights that it adapts"
            hint = "merge it into its model: AutoPeftModelForFeatureExtraction.from_pretrained("
            hint += "FOLDER).merge_and_unload().save_pretrained(OTHER), and copy the tokenizer"
            if whole:
                what = "holds whole weights and an adapter of peft, and either may be meant"
                hint = "remove adapter_config.json to use only the weights, or merge the adapter"
            raise CseError(what, where="model.name", value=name, hint=hint)
        if whole:
            return folder
    hint = "name the folder that save_pretrained wrote"
    if (path / RUN_FILE).is_file():
        hint = "this run has saved no model yet"
    raise CseError("is a folder without config.json", where="model.name", value=name, hint=hint)


def read_modules(root: Path, name: str) -> list[tuple[str, Path]]:
    """Return the kinds and folders of sentence-transformers' modules; none without its list."""
    file = root / "modules.json"
    modules: list[tuple[str, Path]] = []
    for module in read_json(file, name, kind=list) if file.is_file() else ():
        values = module if isinstance(module, dict) else {}
        named, inner = str(values.get("type")), str(values.get("path"))
        if named == WHOLE and (root / MANIFEST).is_file():
            continue  # the whole model, as its manifest has it
        if not named.startswith("sentence_transformers."):
            what = "needs code of its own, which cse never runs"
            hint = "encode with sentence-transformers and trust_remote_code=True"
            raise CseError(what, where=str(file), value=named, hint=hint)
        kind = named.rpartition(".")[2]
        what, value = "names a module that cse does not have", kind
        hint = f"encode with sentence-transformers: cse has {', '.join(MODULES)}, in this order"
        if kind in (MODULES[1:] if modules else MODULES[:1]):
            if inner != ".." and Path(inner).name == inner:
                modules.append((kind, root / inner))
                continue
            what, value, hint = "names a folder elsewhere", inner, "copy the whole folder again"
        raise CseError(what, where=str(file), value=value, hint=hint)
    return modules


def read_json_files(folder: Path, name: str) -> dict[str, dict[str, Any]]:
    """Return the content of a model folder's JSON files by name, of those that are there."""
    return {
        file: read_json(folder / file, name, kind=dict)
        for file in JSON_FILES
        if (folder / file).is_file()
    }


def facts_of_files(name: str, files: Mapping[str, dict[str, Any]]) -> RunInfo:
    """Read the facts of a model from its JSON files by name; None for those they lack."""
    config = files.get("config.json", {})
    family = config.get("model_type")
    hidden = _whole(config, "hidden_size", "dim", "d_model", "n_embd")
    positions = _whole(config, "max_position_embeddings", "n_positions")
    if positions is not None and family in _OFFSET_POSITIONS:
        positions -= (_whole(config, "pad_token_id") if "pad_token_id" in config else 1) or 0
        positions -= 1
    return RunInfo(
        model=name,
        family=family if isinstance(family, str) else None,
        hidden=hidden,
        embedding=_whole(config, "embedding_size") or hidden,
        layers=_whole(config, "num_hidden_layers", "n_layers", "n_layer"),
        positions=positions,
        heads=_whole(config, "num_attention_heads", "n_heads", "n_head"),
        cased=_cased(files),
        mask_token=_mask_token(files),
        end_token=_end_token(files),
        causal=_causal(config),
        either_direction=family in DECODERS,
    )


def _causal(config: Mapping[str, Any]) -> bool:
    """Check whether a model reads in one direction, as far as its configuration says."""
    heads = config.get("architectures")
    continues = isinstance(heads, list) and any(str(h).endswith(_CONTINUES) for h in heads)
    if config.get("model_type") in DECODERS or continues:
        both = config.get("use_bidirectional_attention")
        return config.get("is_causal", True) is not False and both is not True
    return config.get("is_decoder") is True or config.get("model_type") in _ONE_WAY


def _whole(config: Mapping[str, Any], *keys: str) -> int | None:
    for key in keys:
        if isinstance(config.get(key), int):
            return int(config[key])
    return None


def _cased(files: Mapping[str, dict[str, Any]]) -> bool | None:
    settings = files.get("tokenizer_config.json", {})
    if isinstance(settings.get("do_lower_case"), bool):
        return not settings["do_lower_case"]
    if "tokenizer.json" in files:
        steps = _walk(files["tokenizer.json"].get("normalizer"))
        return not any(
            step.get("type") == "Lowercase"
            or (step.get("type") == "BertNormalizer" and step.get("lowercase", True))
            for step in steps
        )
    return None


def _walk(node: object) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    if isinstance(node, list):
        for inner in node:
            yield from _walk(inner)


def _mask_token(files: Mapping[str, dict[str, Any]]) -> bool | None:
    named = [files.get(f, {}) for f in ("tokenizer_config.json", "special_tokens_map.json")]
    if any(table.get("mask_token") for table in named):
        return True
    if "tokenizer.json" in files:
        added = files["tokenizer.json"].get("added_tokens", [])
        contents = [token.get("content") for token in added if isinstance(token, dict)]
        return "[MASK]" in contents or "<mask>" in contents
    return False if any("mask_token" in table for table in named) else None


def _end_token(files: Mapping[str, dict[str, Any]]) -> bool | None:
    settings = files.get("tokenizer_config.json", {})
    if any(t.get("eos_token") for t in (settings, files.get("special_tokens_map.json", {}))):
        return True
    if settings.get("tokenizer_class") not in _NO_TOKENS_OF_ITS_OWN:
        return None
    steps = [*_walk(files.get("tokenizer.json", {}).get("post_processor"))]
    ends = any("SpecialToken" in step["single"][-1] for step in steps if step.get("single"))
    return ends or any("sep" in step for step in steps)
