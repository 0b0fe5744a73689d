"""Which plugins and commands are installed, read from their metadata without importing any."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, PackageMetadata, distributions

from cse_core.hookspecs import GROUP
from cse_core.registry.plugin_info import TOOLKIT, PluginInfo, canonical

COMMANDS_GROUP = f"{GROUP}.commands"
"""The entry-point group of commands; a dot in a name stands for the space of a nested command."""
DISABLE_VARIABLE = "CSE_DISABLE_PLUGINS"
"""Environment variable with plugins to leave out, separated by commas."""
ALL = "all"
"""Leaves out every plugin but those of the toolkit's own wheel."""


def find_entry_points(group: str = GROUP) -> Iterator[EntryPoint]:
    """Yield every installed entry point of a group, in the order of ``sys.path``.

    Of a distribution that is installed more than once the first counts, which Python imports. What
    an interrupted uninstallation leaves, a folder without readable metadata, is passed over.
    """
    seen: set[str] = set()
    for dist in distributions():
        try:
            if f"[{group}]" in (dist.read_text("entry_points.txt") or ""):
                name = canonical(_metadata(dist)["Name"])
                if name not in seen:
                    seen.add(name)
                    yield from dist.entry_points.select(group=group)
        except (AttributeError, KeyError, TypeError, ValueError):
            continue


@lru_cache
def _metadata(dist: Distribution) -> PackageMetadata:
    """Return the metadata of a distribution, parsed once: it includes the whole readme."""
    return dist.metadata


def describe(point: EntryPoint) -> PluginInfo:
    """Describe an entry point from the metadata of its distribution."""
    assert point.dist is not None, "entry points are those of distributions"
    metadata = _metadata(point.dist)
    name = canonical(metadata["Name"])
    return PluginInfo(
        key=f"{name}:{point.name}",
        name=point.name,
        distribution=name,
        version=metadata["Version"] or "",
        summary=metadata["Summary"] or "",
        module=point.value,
    )


def left_out_by(names: Iterable[str] = ()) -> dict[str, str]:
    """Map each plugin left out to the cause: ``--no-plugin NAME`` or the variable."""
    variable = os.environ.get(DISABLE_VARIABLE, "")
    reasons = {name.strip(): f"--no-plugin {name.strip()}" for name in names if name.strip()}
    for name in filter(None, map(str.strip, variable.split(","))):
        reasons.setdefault(name, f"{DISABLE_VARIABLE}={variable.strip()}")
    return reasons


def is_meant(info: PluginInfo, name: str) -> bool:
    """Check whether a name means a plugin: a key, an entry point, a distribution, or ``all``."""
    if name == ALL:
        return info.distribution != TOOLKIT
    distribution, separator, entry_point = name.partition(":")
    if separator:
        return canonical(distribution) == info.distribution and entry_point == info.name
    return canonical(name) in (canonical(info.name), info.distribution)


def blocked(info: PluginInfo, left_out: Mapping[str, str]) -> PluginInfo | None:
    """Describe a plugin that is left out; None where nothing leaves it out."""
    for name, origin in left_out.items():
        if is_meant(info, name):
            variable = origin.startswith(DISABLE_VARIABLE)
            fix = f"unset {DISABLE_VARIABLE}" if variable else f"run without {origin}"
            return replace(info, status="blocked", reason=f"left out by {origin}", fix=fix)
    return None


def update_command(distribution: str) -> str:
    """Say what to update: no command, for a name that anybody might register on an index."""
    return f"update {distribution}"
