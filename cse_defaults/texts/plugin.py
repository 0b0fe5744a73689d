"""The sources of texts that the toolkit reads; imports nothing heavy."""

from __future__ import annotations

from typing import Any

from cse_core.hookspecs import hookimpl
from cse_core.loading import load_factory
from cse_core.records import SourceSpec

_HERE = "cse_defaults.texts"


def _files(name: str, summary: str, reader: str, *endings: str, **more: Any) -> SourceSpec:
    factory = f"{_HERE}.files:{reader}"
    return SourceSpec(name=name, summary=summary, factory=factory, endings=endings, **more)


def _places(name: str, summary: str, reader: str, takes: str) -> SourceSpec:
    def check(text: str) -> bool:
        """Import what tells it when it is asked."""
        return bool(load_factory(f"{_HERE}.{takes}")(text))

    return SourceSpec(name=name, summary=summary, factory=f"{_HERE}.{reader}", takes=check)


@hookimpl
def cse_sources() -> list[SourceSpec]:
    """Return the readers of files and data sets of the hub."""
    saved, hub = "a folder of save_to_disk", "a data set of the hub: owner/name@split"
    fields = "a header line, then rows of fields"
    return [
        _files("lines", "a text a line", "Lines", ".txt"),
        _files("separated", fields, "Separated", ".csv", ".tsv", parameters=("quotes",)),
        _files("json", "an object a line, or a list of objects", "Json", ".jsonl", ".json"),
        _files("arrow", "columns of Parquet or Arrow", "Arrow", ".parquet", ".arrow"),
        _places("saved", saved, "files:Saved", "files:is_saved"),
        _places("hub", hub, "hub:HubRows", "hub:hub_name"),
    ]


ENDINGS = tuple(ending for spec in cse_sources() for ending in spec.endings)
"""Endings of the files that the toolkit itself reads."""
