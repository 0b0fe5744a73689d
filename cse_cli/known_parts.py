"""Which distribution brings a part that is not installed: data for hints, read from a file."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from cse_core.registry.plugin_info import KnownPart


@cache
def known_parts() -> tuple[KnownPart, ...]:
    """Return the parts that ``known_parts.toml`` lists."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return tuple(
        KnownPart(kind, name, distribution, tuple(provides))
        for distribution, kinds in tomllib.loads(text).items()
        for kind, parts in kinds.items()
        for name, provides in parts.items()
    )
