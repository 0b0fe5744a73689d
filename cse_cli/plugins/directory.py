"""The directory of plugins: what need not be installed, and which distribution brings it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from cse_core.registry.plugin_info import AnyKind, KnownPart


@dataclass(frozen=True)
class Listing:
    """A distribution of the directory.

    Attributes:
        summary: What it is for, in one line.
        paper: Short citation; empty where it has none.
        parts: Names by kind, with the capabilities that each provides.
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
