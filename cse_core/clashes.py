"""Parts of one name in one kind: both stay usable by their full names, and both plugins say so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cse_core.plugin_info import NOUNS, AnyKind, PluginInfo, kind_of


def mark_clashes(infos: Sequence[PluginInfo]) -> tuple[PluginInfo, ...]:
    """Return the plugins with those marked whose parts share a name with another's."""
    owners: dict[tuple[AnyKind, str], list[PluginInfo]] = defaultdict(list)
    for info in infos:
        for part in info.parts:
            owners[kind_of(part), part.name].append(info)
    marked = []
    for info in infos:
        clashes = {
            (kind, name): [other for other in holders if other is not info]
            for (kind, name), holders in owners.items()
            if len(holders) > 1 and info in holders
        }
        marked.append(_conflicting(info, clashes) if clashes else info)
    return tuple(marked)


def _conflicting(
    info: PluginInfo, clashes: Mapping[tuple[AnyKind, str], Sequence[PluginInfo]]
) -> PluginInfo:
    told = [
        f"{NOUNS[kind]} {name} is also in {', '.join(_told(other, info) for other in others)}"
        for (kind, name), others in clashes.items()
    ]
    name = next(iter(clashes))[1]
    same = any(o.distribution == info.distribution for others in clashes.values() for o in others)
    return replace(
        info,
        status="conflicting",
        reason="; ".join(told),
        fix=f"write {info.key if same else info.distribution}/{name} to use this one",
    )


def _told(other: PluginInfo, info: PluginInfo) -> str:
    return other.key if other.distribution == info.distribution else other.label
