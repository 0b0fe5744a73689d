"""Which plugins are installed, read from their metadata without importing any of them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path

from cse_cli.plugins.distributions import registering_distributions
from cse_cli.plugins.install_hints import pip_install
from cse_core import __version__
from cse_core.registry.plugin_info import TOOLKIT, PluginInfo, canonical
from cse_core.specs import GROUP

_BOUND = re.compile(r"(>=|<)([0-9]+(?:\.[0-9]+)*)")


@dataclass(frozen=True)
class Found:
    """An entry point and the metadata of its distribution.

    Attributes:
        entry_point: What to load; None where the metadata cannot be read.
        problem: Why the metadata cannot be read; empty where it can.
    """

    info: PluginInfo
    entry_point: EntryPoint | None
    dist: Distribution | None
    problem: str = ""

    @property
    def place(self) -> str:
        """Return the folder of its metadata, or an empty text."""
        return str(getattr(self.dist, "_path", ""))


def find_entry_points() -> Iterator[Found]:
    """Yield every installed entry point of the group, in the order of ``sys.path``.

    Damaged metadata of one distribution hides nothing but that distribution.
    """
    for dist, text in registering_distributions():
        try:
            if isinstance(text, Exception):
                raise text
            if f"[{GROUP}]" not in text:
                continue
            entry_points = [point for point in dist.entry_points if point.group == GROUP]
        except Exception as error:
            found = describe(None, dist, f"its entry_points.txt cannot be read: {error}")
            if found.info.distribution.startswith("cse-"):
                yield found
            continue
        for point in entry_points:
            yield describe(point, dist)


def describe(point: EntryPoint | None, dist: Distribution | None, problem: str = "") -> Found:
    """Return what the metadata says about an entry point."""
    distribution = version = summary = ""
    try:
        if dist is not None:
            metadata = dist.metadata
            distribution = canonical(metadata["Name"] or "")
            version = metadata["Version"] or ""
            summary = metadata["Summary"] or ""
    except Exception as error:
        problem = problem or f"its metadata cannot be read: {error}"
    if not distribution:
        problem = problem or "its metadata has no name"
        folder = Path(str(getattr(dist, "_path", "")))
        distribution = canonical(folder.name.split("-")[0]) or "unknown"
    name = point.name if point is not None else "?"
    info = PluginInfo(
        key=f"{distribution}:{name}",
        name=name,
        distribution=distribution,
        version=version,
        summary=summary,
        module=point.value if point is not None else "",
    )
    return Found(info, point, dist, problem)


def in_order(found: Iterable[Found]) -> list[Found]:
    """Return the entry points by distribution and name, without copies.

    Those of one key stay in the order of ``sys.path``, so that the first is the one that Python
    imports. An editable installation can leave its metadata both beside the sources and in
    site-packages: equal version and module are one plugin.
    """
    folders: dict[str, int] = {}
    identities: set[tuple[str, str, str]] = set()
    kept = []
    for item in found:
        identity = (item.info.key, item.info.version, item.info.module)
        if identity in identities and not item.problem:
            continue
        identities.add(identity)
        parent = os.path.dirname(item.place)
        rank = folders.setdefault(parent, len(folders))
        kept.append((item.info.distribution, item.info.name, rank, item.place, item))
    return [row[-1] for row in sorted(kept, key=lambda row: row[:-1])]


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
    """Tell whether a requirement of plain bounds, ``cse-toolkit<0.2,>=0.1``, is met.

    False of all others, which ``packaging`` reads: its import takes long beside a listing.
    """

    def release(version: str) -> list[int]:
        return [int(part) for part in re.sub(r"(\.0+)+$", "", version).split(".")]

    bounds = (f">={__version__}", *line.removeprefix(TOOLKIT).split(","))
    return all(
        found and (release(__version__) >= release(found[2])) == (found[1] == ">=")
        for found in map(_BOUND.fullmatch, bounds)
    )


def repair_command(item: Found, *, missing: str = "") -> str:
    """Return what to type when a plugin cannot be loaded, for want of the module ``missing``."""
    name = item.info.distribution
    if name == TOOLKIT:
        return pip_install(TOOLKIT, "--force-reinstall", "--no-deps")
    sources = editable_sources(item.dist)
    if sources:
        return f"pip install -e {sources}" if missing else f"fix {sources}, or pip uninstall {name}"
    if item.problem or (missing and missing.split(".")[0] == item.info.module.split(".")[0]):
        return pip_install(name, "--force-reinstall")
    return update_command(name)


def update_command(wanted: str) -> str:
    """Return what to type for another version: of a plugin by its name, of ``cse-toolkit>=9``."""
    if not wanted.startswith(TOOLKIT):
        return pip_install(wanted, "-U")
    return pip_install(TOOLKIT, "-U", versions=wanted.removeprefix(TOOLKIT))


def editable_sources(dist: Distribution | None) -> str:
    """Return the source folder of an editable installation, or an empty text."""
    try:
        text = dist.read_text("direct_url.json") if dist is not None else None
        url = json.loads(text) if text else {}
        if url["dir_info"]["editable"]:
            from urllib.parse import unquote, urlsplit

            return unquote(urlsplit(url["url"]).path)
    except (KeyError, TypeError, ValueError, OSError):
        pass
    return ""
