"""A composition as a recipe that repeats it: plain data, and the TOML text of a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import tomlkit

from cse_core.options import Options, is_location
from cse_core.recipes.composition import Composition
from cse_core.recipes.reading import CORE_TABLES, KINDS
from cse_core.registry.registry import Registry

OptionsT = TypeVar("OptionsT", bound=Options)

WORDS = (None, "auto", "none", "self")
"""Values that name no file, whatever lies in the working folder."""


def as_recipe(composition: Composition) -> dict[str, Any]:
    """Return the content of a recipe file that repeats a run."""
    expressions = composition.expressions
    recipe: dict[str, Any] = {"name": composition.recipe, "params": dict(composition.params)}
    for name in CORE_TABLES:
        recipe[name] = _values(getattr(composition, name), name, expressions)
    recipe["views"] = {
        name: _values(options, f"views.{name}", expressions)
        for name, options in composition.view_options.items()
    }
    for kind in KINDS:
        recipe[kind] = [
            {
                "use": f"{part.distribution}/{part.use}"
                if (kind, part.use) in composition.shared_names
                else part.use,
                "name": part.name,
                **_values(part.options, part.path, expressions),
            }
            for part in composition.of(kind)
        ]
    return {key: content for key, content in recipe.items() if content}


def with_whole_paths(composition: Composition, registry: Registry) -> Composition:
    """Return a composition that names its files and folders by their whole paths.

    Names of installed encoders and data sets, which go before files, stay as they are.
    """

    def whole(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(whole, value))
        path = os.path.expanduser(value or "")
        name = value in WORDS or registry.has("encoder", value) or registry.has("dataset", value)
        return value if name or not os.path.exists(path) else os.path.abspath(path)

    def located(options: OptionsT) -> OptionsT:
        fields = type(options).model_fields.items()
        names = [name for name, info in fields if is_location(info)]
        return options.model_copy(update={n: whole(getattr(options, n)) for n in names})

    core = {name: located(getattr(composition, name)) for name in CORE_TABLES}
    parts = tuple(replace(part, options=located(part.options)) for part in composition.parts)
    return replace(composition, parts=parts, **core)


def dump_recipe(composition: Composition) -> str:
    """Return the resolved recipe as TOML text; reading it repeats the run."""
    document = tomlkit.document()
    document.add(tomlkit.comment("Every setting of a run; cse train --recipe FILE repeats it."))
    document.add(tomlkit.comment(f"Its recipe is {composition.recipe or 'the default'}."))
    parts = {part.path: part for part in composition.parts}
    for key, content in as_recipe(composition).items():
        if isinstance(content, list):
            array = tomlkit.aot()
            for item in content:
                part = parts[f"{key}.{item['name']}"]
                table = tomlkit.table()
                table.add(tomlkit.comment(f"{part.spec.summary} ({part.owner})"))
                table.update(item)
                array.append(table)
            content = array
        document.append(key, content)
    return tomlkit.dumps(document)


def _values(options: Options, path: str, expressions: Mapping[str, str]) -> dict[str, Any]:
    """Return options as TOML can hold them; expressions of parameters as they were written."""
    values: dict[str, Any] = {}
    for name, value in options.model_dump().items():
        default = type(options).model_fields[name].get_default(call_default_factory=True)
        if f"{path}.{name}" in expressions:
            values[name] = expressions[f"{path}.{name}"]
        elif value is None and default is not None:
            values[name] = "none"
        elif value is not None and not (value == default and value in ((), {})):
            values[name] = _listed(value)
    return values


def _listed(value: Any) -> Any:
    if isinstance(value, tuple | list | set | frozenset):
        return [_listed(item) for item in value]
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items() if item is not None}
    return value
