"""Which papers to cite: those of a run's parts, of a recipe, of a plugin, or of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse_core.hookspecs import COMPONENT_SPECS
from cse_core.records import RecipeSpec
from cse_core.registry.registry import Registry

if TYPE_CHECKING:
    from cse_cli.plugins.installed import Installed

ALL = "all"
"""Means every installed plugin."""


def papers_of(settings: Mapping[str, Any], registry: Registry) -> Iterator[str]:
    """Yield the citations of a recipe's table and of its parts, as far as they are installed."""
    recipe = settings.get("name")
    papers = (record.spec.paper for record in registry.all(RecipeSpec) if record.name == recipe)
    yield from filter(None, papers)
    for kind in COMPONENT_SPECS:
        for part in settings.get(kind, ()):
            owner, _, name = part.get("use", part.get("name", "")).rpartition("/")
            for record in registry.parts(kind):
                if record.name == name and owner in ("", record.distribution) and record.spec.paper:
                    yield record.spec.paper


def cited(what: str, plugins: Installed) -> tuple[str, ...]:
    """Return the papers behind a run's folder, a recipe, a recipe's file, a plugin, or ``all``."""
    from cse_core.errors import CseError
    from cse_engine.compose.reading import read_recipe

    infos = plugins.manager.infos
    meant = [info for info in infos if what in (ALL, info.name, info.distribution, info.key)]
    papers: list[str] = []
    if meant and not Path(what).exists():
        papers += [getattr(part, "paper", "") for info in meant for part in info.parts]
    else:
        try:
            documents = read_recipe(what, plugins.registry)
        except CseError as error:
            hint = "name a run's folder, a recipe, a plugin, or all"
            raise CseError(error.what, where="--cite", value=what, hint=hint) from None
        for document in documents:
            papers += papers_of({**document.table, "name": document.name}, plugins.registry)
    return tuple(dict.fromkeys(filter(None, papers)))
