"""A composition as a recipe that repeats it: plain data, and the TOML text of a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tomlkit

from cse_core.options import Options
from cse_engine.compose.composition import Composition
from cse_engine.compose.reading import CORE_TABLES, KINDS, model_document


def as_recipe(composition: Composition) -> dict[str, Any]:
    """Return the content of a recipe file that repeats a run."""
    expressions = composition.expressions
    recipe: dict[str, Any] = {"name": composition.recipe, "params": dict(composition.params)}
    for name in CORE_TABLES:
        recipe[name] = _values(getattr(composition, name), name, expressions)
    # What takes the model's own setting away; left out, that would be there again.
    saved = model_document(composition.says, composition.facts).table["inference"]
    recipe["inference"] = dict.fromkeys(saved, "none") | recipe["inference"]
    # What was derived from the data stands here too: on a resume nobody looks at its columns.
    for view in composition.views:
        texts = {name: getattr(view, name) for name in ("branch", "column", "prompt", "weights")}
        named = {name: text for name, text in texts.items() if text is not None}
        named |= {} if view.lists == "rows" else {"lists": view.lists}
        recipe.setdefault("views", {})[view.name] = named
    for kind in KINDS:
        recipe[kind] = [
            {"use": part.qualified, "name": part.name}
            | _values(part.options, part.path, expressions)
            for part in composition.of(kind)
        ]
    return {key: content for key, content in recipe.items() if content}


def dump_recipe(composition: Composition) -> str:
    """Return the resolved recipe as TOML text; reading it repeats the run."""
    document = tomlkit.document()
    document.add(tomlkit.comment("Every setting of a run; cse train --recipe FILE repeats it."))
    document.add(tomlkit.comment(f"Its recipe is {composition.recipe or 'the default'}."))
    document.update(as_recipe(composition))
    for kind in KINDS:
        for table, part in zip(document.get(kind, ()), composition.of(kind), strict=True):
            table.comment(f"{part.spec.summary} ({part.owner})")
    return tomlkit.dumps(document)


def _values(options: Options, path: str, expressions: Mapping[str, str]) -> dict[str, Any]:
    """Return options as TOML can hold them; expressions of parameters as they were written."""
    plain, values = options.model_dump(mode="json", exclude_none=True), dict[str, Any]()
    for name, info in type(options).model_fields.items():
        value, default = getattr(options, name), info.get_default(call_default_factory=True)
        if f"{path}.{name}" in expressions:
            values[name] = expressions[f"{path}.{name}"]
        elif value is None and default is not None:
            values[name] = "none"
        elif value is not None and not (value == default and value in ((), {})):
            values[name] = plain[name]
    return values
