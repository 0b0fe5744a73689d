"""Whether the modules that records name are there, seen without importing one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec

from cse_cli.plugins.discovery import Found, repair_command
from cse_core.registry.plugin_info import NOUNS, PluginInfo


def with_missing_factories(info: PluginInfo) -> PluginInfo:
    """Return a plugin as broken where a record names a module that is not there.

    Its other parts can be used: a run fails only where it needs the missing one.
    """
    missing = list(missing_factories(info)) if info.status == "active" else []
    if not missing:
        return info
    try:
        dist = distribution(info.distribution)
    except PackageNotFoundError:
        dist = None
    fix = repair_command(Found(info, None, dist))
    return replace(info, status="broken", reason="; ".join(missing), fix=fix)


def missing_factories(info: PluginInfo) -> Iterator[str]:
    """Yield a line for each record whose factory is in a module that is not there."""
    known: dict[str, bool] = {}
    for record in info.parts:
        module = getattr(record, "factory", "").partition(":")[0]
        if module and not known.setdefault(module, is_there(module)):
            yield f"{NOUNS[record.kind]} {record.name}: module {module} is not there"


def is_there(module: str) -> bool:
    """Tell whether a module can be found; no package above it is imported."""
    top, *below = module.split(".")
    try:
        spec = find_spec(top)
        name = top
        for each in below:
            if spec is None or spec.submodule_search_locations is None:
                return False
            name = f"{name}.{each}"
            spec = PathFinder.find_spec(name, list(spec.submodule_search_locations))
    except (ImportError, ValueError):
        return False
    return spec is not None
