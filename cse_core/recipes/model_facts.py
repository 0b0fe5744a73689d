"""What a model's name stands for, and what its JSON files say before anything heavy is loaded."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

from cse_core.errors import CseError
from cse_core.files import MANIFEST, exists
from cse_core.loading import package_path
from cse_core.recipes.composition import PlannedPart
from cse_core.recipes.settings import InferenceOptions
from cse_core.records import HeadSpec, RowPoolerSpec, SliceSpec
from cse_core.registry.registry import Registry
from cse_core.run_info import RunInfo
from cse_core.runtime.declared import AGAIN, Declared, checked, declared
from cse_core.runtime.hub import hub_folder
from cse_core.runtime.model_files import facts_of_files, model_folder, read_json_files

_HUB_NAME = re.compile(
    r"(?=.{1,96}$)(?!.*(--|\.\.|\.git$))[A-Z0-9]([\w.-]*\w)?(/[A-Z0-9]([\w.-]*\w)?)?", re.A | re.I
)


def model_facts(name: str, registry: Registry) -> RunInfo:
    """Return what is known of an encoder.

    It is an installed encoder, a folder, a run, or a name on the Hugging Face hub, of which only
    the small files are fetched; where it cannot be reached and has nothing cached, all facts but
    the name are None.

    Raises:
        CseError: If a folder is missing or holds no model, a file in it is not JSON, or the hub has
            no model of this name.
    """
    folder = _folder(name, registry)
    if folder is None:
        return RunInfo(model=name)
    origin = registry.encoder(name).name if registry.has("encoder", name) else None
    files = read_json_files(model_folder(folder, name), name)
    facts = facts_of_files(name, files, origin=origin)
    return replace(facts, cased=False) if declared(folder, name).do_lower_case else facts


def declared_by(name: str, registry: Registry) -> Declared:
    """Return what a model says of how it encodes; nothing where the hub cannot be reached.

    Raises:
        CseError: As :func:`model_facts`.
    """
    folder = _folder(name, registry)
    return Declared() if folder is None else declared(folder, name)


def _folder(name: str, registry: Registry, *, weights: bool = False) -> Path | None:
    encoders = [found.name for found in registry.encoders()]
    return find_model(name, registry) or hub_folder(name, encoders, weights=weights)


def resolve_model(name: str, registry: Registry) -> str:
    """Return the folder that a model's name stands for; what is on the hub is fetched.

    Raises:
        CseError: If a folder is missing or holds no model, or the hub does not give it.
    """
    folder = _folder(name, registry, weights=True)
    assert folder is not None, "weights are there or refused"
    model_folder(folder, name)
    return str(folder)


def saved_parts(
    says: Declared, registry: Registry, pooling: str | None = None
) -> tuple[list[PlannedPart], InferenceOptions]:
    """Return what a model says of itself as parts and settings.

    ``pooling`` replaces its row pooler and heads.

    Raises:
        CseError: If it names an unknown pooler, head or slicer, or one twice.
    """
    parts: list[PlannedPart] = []
    for item in says.poolers(pooling):
        found = registry.find("pool", item.pop("use"), where=MANIFEST)
        name = item.pop("name")
        options = checked(partial(found.spec.options.model_validate, item), Path(MANIFEST))
        parts.append(PlannedPart.of(found, options, name))
    row, *others = [part.spec for part in parts]
    heads = [spec for spec in others if isinstance(spec, HeadSpec)]
    fit = isinstance(row, RowPoolerSpec) and others[: len(heads)] == heads
    if not fit or len({part.path for part in parts}) < len(parts):
        what = "names an unknown pooler, head or slicer, or the same one twice"
        raise CseError(what, where=MANIFEST, hint=AGAIN)
    slices = any(isinstance(spec, SliceSpec) for spec in others)
    return parts, InferenceOptions(slice=slices, **says.inference())


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
    if exists(path):
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
