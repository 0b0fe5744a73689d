"""The files that a run reads, as hashes: a resumed run reads the same or is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cse_core.errors import CseError
from cse_core.files import file_sum
from cse_core.options import is_location
from cse_core.registry.registry import Registry
from cse_engine.compose.composition import Composition
from cse_engine.compose.models import Models

_READ = (".json", ".txt", ".model", ".safetensors", ".bin", ".jsonl", ".tsv", ".gz", ".zst")
"""Ends of the names of a model's files that are read."""


def fingerprints(run: Composition, registry: Registry) -> dict[str, str]:
    """Return the SHA-256 of each file that an option names, but the data, by option and file.

    A folder, or a name of the hub, stands for the files of a model. Where they lie does not count.
    """
    sums: dict[str, str] = {}
    named = [("model", run.model), ("train", run.train), *((p.path, p.options) for p in run.parts)]
    for path, options in named:
        for name, info in type(options).model_fields.items():
            value = getattr(options, name) if is_location(info) else None
            for text in (value,) if isinstance(value, str) else value or ():
                for file, shown in _files(text, registry):
                    sums[f"{path}.{name}: {shown}"] = file_sum(file)
    return sums


def _files(name: str, registry: Registry) -> Iterator[tuple[Path, str]]:
    """Yield the files that a name stands for, and how messages name each."""
    try:
        place = Models(registry).local(name)
    except CseError:
        return  # a word, such as self
    if place is None:
        return
    if place.is_file():
        yield place, place.name
    yield from _files_in(place)


def folder_sums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a model's folder that says how it encodes, by name."""
    return {shown: file_sum(file) for file, shown in _files_in(folder)}


def _files_in(place: Path) -> Iterator[tuple[Path, str]]:
    for file in sorted([*place.glob("*"), *place.glob("*/*")]) if place.is_dir() else ():
        if file.suffix in _READ and file.is_file():
            yield file, file.relative_to(place).as_posix()
