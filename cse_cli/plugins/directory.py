"""The directory of plugins: what need not be installed, and which distribution brings it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from cse_cli.plugins.index import names
from cse_core.capabilities import Need
from cse_core.registry.plugin_info import KnownPart


@cache
def directory() -> Mapping[str, Mapping[str, Any]]:
    """Read ``directory.toml``: the parts by kind and the commands of each distribution."""
    text = Path(__file__).with_name("directory.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def known_parts() -> tuple[KnownPart, ...]:
    """Return the parts that the directory lists."""
    return tuple(
        KnownPart(
            kind, name, distribution, tuple(map(Need.parse, provides)), distribution in names()
        )
        for distribution, table in directory().items()
        for kind, parts in table.items()
        if kind != "command"
        for name, provides in parts.items()
    )


def known_commands() -> dict[str, str]:
    """Return the distribution of each command that the directory lists."""
    return {
        name: distribution
        for distribution, table in directory().items()
        for name in table.get("command", ())
    }
