"""Which plugins are installed, read from their metadata without importing any of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, EntryPoint, distributions

from cse_core import __version__
from cse_core.registry.plugin_info import TOOLKIT, PluginInfo, canonical
from cse_core.specs import GROUP

COMMANDS_GROUP = f"{GROUP}.commands"
"""The entry-point group of commands; a dot in a name stands for the space of a nested command."""
_BOUND = re.compile(r"(>=|<)([0-9]+(?:\.[0-9]+)*)")


@dataclass(frozen=True)
class Found:
    """An entry point and the metadata of its distribution.

    Attributes:
        dist: The distribution; None of a module of the toolkit.
        problem: Why its entry points cannot be read; empty where they can.
    """

    info: PluginInfo
    entry_point: EntryPoint
    dist: Distribution | None
    problem: str = ""


def find_entry_points(group: str = GROUP) -> Iterator[Found]:
    """Yield every installed entry point of a group, in the order of ``sys.path``.

    Of a distribution that is installed more than once the first counts, which Python imports.
    Damaged metadata of one distribution hides nothing but that distribution.
    """
    seen: set[str] = set()
    for dist in distributions():
        try:
            text = dist.read_text("entry_points.txt") or ""
            if f"[{group}]" not in text:
                continue
            found = [describe(point, dist) for point in dist.entry_points.select(group=group)]
            name = found[0].info.distribution
        except Exception as error:
            folder = str(getattr(dist, "_path", "")).rpartition("/")[2]
            name = canonical(folder.partition("-")[0])
            if name.startswith("cse-") and name not in seen and group == GROUP:
                info = PluginInfo(
                    key=f"{name}:?", name="?", distribution=name, version="", summary="", module=""
                )
                problem = f"its metadata cannot be read: {error}"
                yield Found(info, EntryPoint("?", "", group), dist, problem)
        else:
            if name not in seen:
                yield from found
            seen.add(name)


def describe(point: EntryPoint, dist: Distribution) -> Found:
    """Return what the metadata says about an entry point."""
    metadata = dist.metadata
    distribution = canonical(metadata["Name"])
    info = PluginInfo(
        key=f"{distribution}:{point.name}",
        name=point.name,
        distribution=distribution,
        version=metadata["Version"] or "",
        summary=metadata["Summary"] or "",
        module=point.value,
    )
    return Found(info, point, dist)


def version_mismatch(dist: Distribution | None) -> tuple[str, bool] | None:
    """Compare a distribution's requirement on cse-toolkit with the running version.

    Returns:
        None where it is met; else what is asked for, ``cse-toolkit>=9``, and whether a newer
        cse-toolkit would meet it.

    Raises:
        ValueError: If the requirement cannot be read.
    """
    lines = (dist.requires or []) if dist is not None else []
    for line in lines:
        if not canonical(line).startswith(TOOLKIT) or _plainly_met(line):
            continue
        from packaging.requirements import Requirement
        from packaging.version import Version

        requirement = Requirement(line)
        if canonical(requirement.name) != TOOLKIT:
            continue
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        if requirement.specifier.contains(__version__, prereleases=True):
            continue
        running = Version(__version__)
        too_old = any(
            clause.operator in {">=", ">", "~=", "=="}
            and running < Version(clause.version.removesuffix(".*"))
            for clause in requirement.specifier
        )
        return f"{TOOLKIT}{requirement.specifier}", too_old
    return None


def _plainly_met(line: str) -> bool:
    """Return whether a requirement of plain bounds, ``cse-toolkit<0.2,>=0.1``, is met.

    False of all others, which ``packaging`` reads: its import takes long beside a listing.
    """

    def release(version: str) -> list[int]:
        return [int(part) for part in re.sub(r"(\.0+)+$", "", version).split(".")]

    bounds = (f">={__version__}", *line.removeprefix(TOOLKIT).split(","))
    return all(
        found and (release(__version__) >= release(found[2])) == (found[1] == ">=")
        for found in map(_BOUND.fullmatch, bounds)
    )


def update_command(wanted: str) -> str:
    """Return what to type for another version: of a plugin by its name, of ``cse-toolkit>=9``."""
    return (
        f"pip install -U {wanted}"
        if re.fullmatch(r"[\w-]+", wanted)
        else f'pip install -U "{wanted}"'
    )
