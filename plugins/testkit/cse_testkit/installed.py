"""What is installed, for tests that run over all of it."""

from __future__ import annotations

from functools import cache

from cse_cli.plugins.manager import load_plugins
from cse_core.records import ComponentSpec, Kind, RecipeSpec
from cse_core.registry.registry import Registered, Registry


@cache
def installed_registry() -> Registry:
    """Return the parts of every installed plugin, loaded once a process."""
    return Registry.from_plugins(load_plugins(environ={}).infos)


def all_parts(kind: Kind | None = None) -> tuple[Registered[ComponentSpec], ...]:
    """Return every installed part, the built-in ones too, or those of one kind."""
    return installed_registry().parts(kind)


def all_recipes() -> tuple[Registered[RecipeSpec], ...]:
    """Return every installed recipe."""
    return installed_registry().recipes()


def part_id(found: Registered[ComponentSpec]) -> str:
    """Return the name of a part in test ids: ``loss-infonce``."""
    return f"{found.spec.kind}-{found.qualified.partition('/')[2]}"
