"""What a run reads, as hashes: a resumed run reads the same or is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from cse_core.errors import CseError, raise_all
from cse_core.files import file_sum
from cse_core.options import is_location
from cse_core.recipes.composition import Composition
from cse_core.recipes.model_facts import find_model
from cse_core.registry.registry import Registry
from cse_core.suites import DevSet

_READ = (".json", ".txt", ".model", ".safetensors", ".bin")
"""Ends of the names of a model's files that are read."""


def fingerprints(run: Composition, dev: Mapping[str, DevSet], registry: Registry) -> dict[str, str]:
    """Return a hash of each dev set, model and file beside the data, by the option that names it.

    A name of the hub stands for the files in its cache. Where they lie does not count.
    """
    found: dict[str, str] = {}
    for name, each in dev.items():
        content = json.dumps(_plain(each), default=_plain).encode()
        found[f"train.dev: {name}"] = hashlib.sha256(content).hexdigest()
    for path, options in (("model", run.model), *((p.path, p.options) for p in run.parts)):
        for name, info in type(options).model_fields.items():
            value = getattr(options, name) if is_location(info) else None
            for text in (value,) if isinstance(value, str) else value or ():
                for file, read_as in _files(text, registry):
                    found[f"{path}.{name}: {read_as}"] = file_sum(file)
    return found


def refuse_changes(then: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Refuse a resumed run that would read something else than it began with.

    Raises:
        CseError: It names each file or set that has changed.
    """
    hint = "restore it as it was, or start a new run"
    raise_all(
        [
            CseError("has changed since the run started", where=name, hint=hint)
            for name, was in then.items()
            if now.get(name) != was
        ]
    )


def _files(name: str, registry: Registry) -> Iterator[tuple[Path, str]]:
    """Yield the files that a name stands for, and how messages name each."""
    from huggingface_hub import try_to_load_from_cache

    try:
        place = find_model(name, registry)
    except CseError:
        return  # a word, such as none
    if place is None:
        cached = try_to_load_from_cache(name, "config.json")
        place = Path(cached).parent if isinstance(cached, str) else Path(name)
    if place.is_file():
        yield place, place.name
    for file in sorted([*place.glob("*"), *place.glob("*/*")]) if place.is_dir() else ():
        if file.suffix in _READ and file.is_file():
            yield file, file.relative_to(place).as_posix()


def _plain(value: Any) -> Any:
    """Return what a dev set holds as JSON can hold it; paths do not count."""
    if is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, set | frozenset):
        return sorted(value)
    return value.tolist() if hasattr(value, "tolist") else type(value).__name__
