"""The directory of plugins: what need not be installed, and which distribution brings it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from cse_core.registry.plugin_info import AnyKind, canonical
from cse_core.registry.registry import Registry


@dataclass(frozen=True)
class KnownPart:
    """A part that need not be installed, and who brings it.

    Attributes:
        provides: Tokens that it provides with default options; ``dev`` of a suite that reads dev
            sets.
    """

    kind: AnyKind
    name: str
    distribution: str
    provides: tuple[str, ...] = ()


@dataclass(frozen=True)
class Listing:
    """A distribution of the directory.

    Attributes:
        summary: What it is for, in one line.
        paper: Short citation; empty where it has none.
        parts: Names by kind, with the tokens that each provides.
        commands: Names of the commands that it brings.
    """

    distribution: str
    summary: str
    paper: str = ""
    parts: Mapping[AnyKind, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    commands: tuple[str, ...] = ()


@cache
def directory() -> tuple[Listing, ...]:
    """Return what ``directory.toml`` lists."""
    text = Path(__file__).with_name("directory.toml").read_text(encoding="utf-8")
    return tuple(
        Listing(
            distribution,
            table.pop("summary"),
            table.pop("paper", ""),
            commands=tuple(table.pop("command", ())),
            parts=table,
        )
        for distribution, table in tomllib.loads(text).items()
    )


@cache
def known_parts() -> tuple[KnownPart, ...]:
    """Return the parts that the directory lists."""
    return tuple(
        KnownPart(kind, name, listing.distribution, tuple(provides))
        for listing in directory()
        for kind, parts in listing.parts.items()
        for name, provides in parts.items()
    )


def known_commands() -> dict[str, str]:
    """Return the distribution of each command that the directory lists."""
    return {name: listing.distribution for listing in directory() for name in listing.commands}


class HintingRegistry(Registry):
    """The parts of the loaded plugins, with hints that name who brings what is missing."""

    def how_to_get(self, kind: AnyKind, name: str) -> str:
        """Return how to get a known part; empty if its plugin is loaded without it."""
        owner, separator, bare = name.rpartition("/")
        owner = canonical(owner.partition(":")[0])
        for part in known_parts():
            meant = not separator or owner == part.distribution
            if meant and (part.kind, part.name) == (kind, bare) and (hint := self._of(part)):
                return hint
        here = {info.distribution for info in self.plugins}
        if separator and owner in {part.distribution for part in known_parts()} - here:
            return f"{owner} is not installed: pip install {owner}"
        return ""

    def close_elsewhere(self, kind: AnyKind, name: str) -> str:
        """Return the known part of a close name, and how to get it."""
        others = {part.name: part for part in known_parts() if part.kind == kind}
        close = get_close_matches(name, others, n=1, cutoff=0.6)
        return f"did you mean {close[0]}? {self._of(others[close[0]])}" if close else ""

    def providers_elsewhere(self, token: str) -> Iterator[tuple[AnyKind, str, str]]:
        """Yield the known parts that would provide a token and are not here, and what to type."""
        for part in known_parts():
            if token in part.provides and not self.has(part.kind, part.name):
                yield part.kind, part.name, f"pip install {part.distribution}"

    def _of(self, part: KnownPart) -> str:
        plugins = [info for info in self.plugins if info.distribution == part.distribution]
        if not plugins:
            name = part.distribution
            return f"it is a part of {name}, not installed: pip install {name}"
        for info in plugins:
            if not info.loaded:
                return f"it is a part of {info.label}, {info.status} ({info.reason}): {info.fix}"
        return ""
