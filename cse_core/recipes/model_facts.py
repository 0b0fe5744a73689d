"""What a model's name stands for, and what its JSON files say before anything heavy is loaded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cse_core.errors import CseError, did_you_mean
from cse_core.records import Facts
from cse_core.registry.loading import package_path
from cse_core.registry.registry import Registry
from cse_core.runtime.model_files import (
    JSON_FILES,
    _json,
    facts_of_files,
    model_folder,
    read_json_files,
)

STARTER = "starter"
"""Name of the embedded default encoder."""
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_PATIENCE = 5.0
"""Seconds that the hub has for an answer."""


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
    folder = find_model(name, registry)
    if folder is None:
        return facts_of_files(name, _from_hub(name, registry))
    starter = registry.has("encoder", name) and registry.encoder(name).name == STARTER
    return facts_of_files(name, read_json_files(model_folder(folder, name), name), starter=starter)


def resolve_model(name: str, registry: Registry) -> str:
    """Return the folder or hub name that a model's name stands for.

    Args:
        name: An installed encoder, a model folder, a run's folder, or a hub name.
        registry: The installed parts.

    Raises:
        CseError: If a folder is missing or holds no model.
    """
    folder = find_model(name, registry)
    if folder is None:
        return name
    model_folder(folder, name)
    return str(folder)


def find_model(name: str, registry: Registry) -> Path | None:
    """Return the folder that a model's name stands for, None where it is a name on the hub.

    Raises:
        CseError: If it is neither, or names an encoder of a plugin that is not installed.
    """
    if registry.has("encoder", name):
        return package_path(registry.encoder(name).spec.path, where="model.name")
    path = Path(name).expanduser()
    if path.exists():
        inside = path / "model"
        return inside if (inside / "config.json").is_file() else path
    if registry.known("encoder", name):
        registry.encoder(name)
    if name.startswith((".", "/", "~")) or _HUB_NAME.fullmatch(name) is None:
        encoders = ", ".join(found.name for found in registry.encoders()) or "none is installed"
        raise CseError(
            "there is no such folder",
            where="model.name",
            value=name,
            hint=f"name a model folder, a run, an installed encoder ({encoders}) or a model of the "
            "Hugging Face hub",
        )
    return None


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
    for file in JSON_FILES:
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
