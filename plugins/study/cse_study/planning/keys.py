"""The key of a run: a digest of everything that its weights follow from."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from cse_cli.plugins.installed import Installed
from cse_core.recipes.composition import Composition
from cse_core.recipes.model_facts import find_model

LENGTH = 16
"""Letters of a key."""
NO_MATTER = ("report", "device", "threads", "log_steps", "save_steps", "check")
"""Options of ``train`` that say how a run is made and watched; its weights do not follow from
them, but for the rounding of a device."""
_SAME_NUMBERS = ("gradient_checkpointing",)
"""Options of ``model`` that save memory and change no bit of a weight."""


def key_of(
    recipe: Mapping[str, Any],
    composition: Composition,
    plugins: Installed,
    start: str | None = None,
) -> str:
    """Return the key of a run.

    Files count by their content and not by their place, the starter's texts and every installed
    encoder too, so that a run of another machine has the same key.

    Args:
        recipe: The content of its recipe file.
        composition: The checked composition.
        plugins: The installed plugins.
        start: Key of the run whose model it starts from, if there is one.
    """
    content: dict[str, Any] = {name: table for name, table in recipe.items() if name != "name"}
    train = {name: value for name, value in content["train"].items() if name not in NO_MATTER}
    model = {name: value for name, value in content["model"].items() if name not in _SAME_NUMBERS}
    model["name"] = start or model_digest(composition.model.name, plugins)
    content |= {"train": train, "model": model, "data": _data(composition, content, plugins)}
    # Views that follow from the rest, which the recipe of a run names too, identify nothing.
    del content["views"]
    if composition.view_options:
        content["views"] = {
            name: options.model_dump(exclude_none=True)
            for name, options in composition.view_options.items()
        }
    text = json.dumps(_by_content(content), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def digest(value: Any) -> str:
    """Return the key of plain data, of which texts that name files count by their content."""
    text = json.dumps(_by_content(value), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def model_digest(name: str, plugins: Installed) -> str:
    """Return a digest of an encoder's files, or the name of one that is not on this machine."""
    folder = find_model(name, plugins.registry)
    return name if folder is None else _folder(str(folder))


def _data(
    composition: Composition, content: Mapping[str, Any], plugins: Installed
) -> dict[str, Any]:
    data = dict(content.get("data", {}))
    corpus = plugins.known_corpus(composition.data)
    if corpus is not None:
        data["path"] = corpus.fingerprint
    return data


def _by_content(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _by_content(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_by_content(each) for each in value]
    if isinstance(value, str) and value.startswith((".", "/", "~")):
        path = os.path.expanduser(value)
        if os.path.isfile(path):
            return _file(path, *_state(path))
        if os.path.isdir(path):
            return _folder(path)
    return value


def _folder(path: str) -> str:
    """Return a digest of the files that a model consists of."""
    files = [
        each
        for each in sorted(Path(path).rglob("*"))
        if each.is_file() and each.suffix in (".json", ".safetensors", ".txt", ".model")
    ]
    parts = [f"{each.relative_to(path)} {_file(str(each), *_state(each))}" for each in files]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _state(path: str | Path) -> tuple[int, int]:
    about = os.stat(path)
    return about.st_size, about.st_mtime_ns


@cache
def _file(path: str, size: int, changed: int) -> str:
    """Return a file's digest, read once as long as it has this size and time."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
