"""What a model's name stands for, and what its JSON files say before anything heavy is loaded."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from cse_core.errors import CseError
from cse_core.loading import package_path
from cse_core.registry.registry import Registry
from cse_core.run_info import RunInfo
from cse_defaults.transformers.declared import Declared, declared
from cse_defaults.transformers.hub import hub_folder
from cse_defaults.transformers.model_files import facts_of_files, model_folder, read_json_files

_HUB_NAME = re.compile(
    r"(?=.{1,96}$)(?!.*(--|\.\.|\.git$))[A-Z0-9]([\w.-]*\w)?(/[A-Z0-9]([\w.-]*\w)?)?", re.A | re.I
)


def look_at(name: str, registry: Registry) -> tuple[RunInfo, Declared]:
    """Return what is known of an encoder, and what it says of how it encodes.

    It is an installed encoder, a folder, a run, or a name on the Hugging Face hub, of which only
    the small files are fetched; where it cannot be reached and has nothing cached, all facts but
    the name are None.
    """
    folder = small_folder(name, registry)
    if folder is None:
        return RunInfo(model=name), Declared()
    says = declared(folder, name)
    origin = registry.encoder(name).name if registry.has("encoder", name) else None
    files = read_json_files(model_folder(folder, name), name)
    facts = facts_of_files(name, files, origin=origin)
    return replace(facts, cased=False) if says.do_lower_case else facts, says


def model_facts(name: str, registry: Registry) -> RunInfo:
    """Return what is known of an encoder, as :func:`look_at` does."""
    return look_at(name, registry)[0]


def small_folder(name: str, registry: Registry, *, weights: bool = False) -> Path | None:
    """Return the folder of a model with its small files, None where the hub does not give them."""
    encoders = [found.name for found in registry.encoders()]
    return find_model(name, registry) or hub_folder(name, encoders, weights=weights)


def resolve_model(name: str, registry: Registry) -> str:
    """Return the folder that a model's name stands for; what is on the hub is fetched."""
    folder = small_folder(name, registry, weights=True)
    assert folder is not None, "weights are there or refused"
    model_folder(folder, name)
    return str(folder)


def find_model(name: str, registry: Registry) -> Path | None:
    """Return the folder that a model's name stands for, None where it is a name on the hub.

    Raises:
        CseError: If it is neither, names an encoder of a plugin that is not installed, or is the
            name of an installed encoder and of a folder with a model.
    """
    if registry.has("encoder", name):
        files = ("config.json", "modules.json", "model/config.json")
        if any(Path(name, file).is_file() for file in files):
            found = registry.encoder(name)
            what = "is an installed encoder, and a folder with a model"
            hint = f"write ./{name} for the folder, {found.plugin}/{found.name} for the other"
            raise CseError(what, where="model.name", value=name, hint=hint)
        return package_path(registry.encoder(name).spec.path, where="model.name")
    path = Path(name).expanduser()
    if os.path.exists(path):
        inside = path / "model"
        return inside if (inside / "config.json").is_file() else path
    if registry.how_to_get("encoder", name):
        registry.encoder(name)
    if name.startswith((".", "/", "~")) or _HUB_NAME.fullmatch(name) is None:
        encoders = ", ".join(found.name for found in registry.encoders()) or "none is installed"
        raise CseError(
            "no such folder",
            where="model.name",
            value=name,
            hint=f"name a model folder, a run, an installed encoder ({encoders}) or a model of the "
            "Hugging Face hub",
        )
    return None
