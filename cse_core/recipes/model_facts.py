"""What can be known of an encoder from its JSON files, before anything heavy is loaded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cse_core.errors import CseError, did_you_mean
from cse_core.records import Facts
from cse_core.registry.loading import package_path
from cse_core.registry.registry import Registry
from cse_core.runtime.model_files import MANIFEST, _json, model_folder

STARTER = "starter"
"""Name of the embedded default encoder."""
_OFFSET_POSITIONS = frozenset(
    {"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "data2vec-text", "longformer",
     "mpnet", "ibert", "roberta-prelayernorm", "xmod", "luke", "esm"}
)  # fmt: skip
"""Families whose positions start behind the padding token's id."""
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_PATIENCE = 5.0
"""Seconds that the hub has for an answer."""
_FILES = ("config.json", "tokenizer_config.json", "tokenizer.json", "special_tokens_map.json")


def model_facts(name: str, registry: Registry) -> Facts:
    """Return what is known of an encoder.

    Args:
        name: An installed encoder, a folder, a run, or a name on the Hugging Face hub, of which
            only the small JSON files are fetched.
        registry: Installed encoders.

    Returns:
        Its facts; all but the name are None where the hub cannot be reached and has nothing cached.

    Raises:
        CseError: If a folder is missing or holds no model, a file in it is no JSON, or the hub has
            no model of this name.
    """
    if registry.has("encoder", name):
        spec = registry.encoder(name).spec
        folder = package_path(spec.path, where="model.name")
        return _of_files(name, _read_folder(folder, name), starter=spec.name == STARTER)
    path = Path(name).expanduser()
    if path.exists():
        folder = model_folder(path, name)
        return _of_files(name, _read_folder(folder, name))
    if registry.known("encoder", name):
        registry.encoder(name)
    if name.startswith((".", "/", "~")) or _HUB_NAME.fullmatch(name) is None:
        raise CseError(
            "there is no such folder",
            where="model.name",
            value=name,
            hint="name a model folder, a run, an installed encoder "
            f"({_names(registry)}) or a model of the Hugging Face hub",
        )
    return _of_files(name, _from_hub(name, registry))


def _of_files(name: str, files: Mapping[str, dict[str, Any]], *, starter: bool = False) -> Facts:
    config = files.get("config.json", {})
    family = config.get("model_type")
    hidden = _whole(config, "hidden_size", "dim", "d_model", "n_embd")
    positions = _whole(config, "max_position_embeddings", "n_positions")
    if positions is not None and family in _OFFSET_POSITIONS:
        positions -= (_whole(config, "pad_token_id") if "pad_token_id" in config else 1) or 0
        positions -= 1
    return Facts(
        model=name,
        family=family if isinstance(family, str) else None,
        hidden=hidden,
        embedding=_whole(config, "embedding_size") or hidden,
        layers=_whole(config, "num_hidden_layers", "n_layers", "n_layer"),
        positions=positions,
        cased=_cased(files),
        mask_token=_mask_token(files),
        starter=starter or files.get(MANIFEST, {}).get("starter") is True,
    )


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
    named = [
        files[name]
        for name in ("tokenizer_config.json", "special_tokens_map.json")
        if name in files
    ]
    if any(table.get("mask_token") for table in named):
        return True
    if "tokenizer.json" in files:
        added = files["tokenizer.json"].get("added_tokens", [])
        return any(
            isinstance(token, dict) and token.get("content") in ("[MASK]", "<mask>")
            for token in added
        )
    return False if any("mask_token" in table for table in named) else None


def _read_folder(folder: Path, name: str) -> dict[str, dict[str, Any]]:
    return {
        file: _json(folder / file, name, kind=dict)
        for file in (*_FILES, MANIFEST)
        if (folder / file).is_file()
    }


def _says_enough(settings: Mapping[str, Any]) -> bool:
    return isinstance(settings.get("do_lower_case"), bool) and "mask_token" in settings


def _from_hub(name: str, registry: Registry) -> dict[str, dict[str, Any]]:
    """Return the JSON files of a model on the hub: cached ones, else what it answers now.

    Empty where it cannot be reached and has nothing cached; loading then reports the reason.
    """
    import huggingface_hub as hub
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    files: dict[str, dict[str, Any]] = {}
    reachable = True
    for file in _FILES:
        if file == "tokenizer.json" and _says_enough(files.get("tokenizer_config.json", {})):
            continue  # megabytes that would tell nothing new
        try:
            path = hub.hf_hub_download(name, file, local_files_only=True)
        except LocalEntryNotFoundError:
            if not reachable:
                continue
            try:
                # Asked first because, other than the download, it does not try for half a minute.
                hub.get_hf_file_metadata(hub.hf_hub_url(name, file), timeout=_PATIENCE)
                path = hub.hf_hub_download(name, file)
            except GatedRepoError:
                reachable = False
                continue
            except RepositoryNotFoundError:
                raise CseError(
                    "is neither a folder, nor an installed encoder, nor a model that the hub shows",
                    where="model.name",
                    value=name,
                    hint=did_you_mean(name, [found.name for found in registry.encoders()]),
                ) from None
            except EntryNotFoundError:
                continue
            except Exception:  # a network has many ways to fail
                reachable = False
                continue
        files[file] = _json(Path(path), name, kind=dict)
    return files


def _names(registry: Registry) -> str:
    return ", ".join(found.name for found in registry.encoders()) or "none is installed"


def resolve_model(name: str, registry: Registry) -> str:
    """Return the folder or hub name that a model's name stands for.

    Args:
        name: A run's folder, a model folder, an installed encoder, or a hub name.
        registry: The installed parts.
    """
    path = Path(name).expanduser()
    if (path / "model" / "config.json").is_file():
        return str(path / "model")
    if path.is_dir():
        if (path / "run.toml").is_file():
            raise CseError(
                "this run has no finished model yet",
                where="model",
                value=name,
                hint=f"finish it with `cse train --resume {name}`",
            )
        return str(path)
    if registry.has("encoder", name):
        return str(package_path(registry.encoder(name).spec.path))
    return name
