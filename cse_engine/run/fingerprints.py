"""The files that a run reads, as hashes: a resumed run reads the same or is refused."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from cse_core.errors import CseError
from cse_core.files import file_sum
from cse_core.options import is_location
from cse_core.registry.registry import Registry
from cse_engine.compose.composition import Composition
from cse_engine.compose.models import Models

_READ = (".json", ".txt", ".model", ".safetensors", ".bin", ".jsonl", ".tsv", ".gz", ".zst", ".csv",
         ".parquet", ".arrow", ".trec", ".qrels", ".xml")  # fmt: skip
"""Ends of the names of files that are read of a model, or of a folder of dev sets."""


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
                with suppress(CseError):  # a word, such as self
                    files = folder_sums(Models(registry).folder(text, fetch=False))
                    sums |= {f"{path}.{name}: {file}": digest for file, digest in files.items()}
    return sums


def folder_sums(place: Path | None) -> dict[str, str]:
    """Return the SHA-256 of a file, or of what is read of a model's folder, by name."""
    if place is None or place.is_file():
        return {} if place is None else {place.name: file_sum(place)}
    inside = ("*", "*/*", "members/*/*", "members/*/*/*")  # those of an ensemble are models too
    files = sorted({file for pattern in inside for file in place.glob(pattern)})
    return {
        file.relative_to(place).as_posix(): file_sum(file)
        for file in files
        if file.suffix in _READ and file.is_file()
    }
