"""What plugins and programs rely on: names, fields, signatures, settings, the keys of JSON."""

import inspect
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import MISSING, fields, is_dataclass
from functools import cached_property
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from cse_cli.main import run
from cse_core.hookspecs import HOOK_RECORDS
from cse_engine.compose.settings import CORE_OPTIONS, ViewOptions
from docs.reference import HANDED, HIDDEN, IN_A_LINE, SECTIONS

KEPT = Path(__file__).with_name("interface.json")
COMMANDS = {
    "list-plugins --json": 3,
    "show-plugin mocose --json": 3,
    "list-recipes --json": 2,
    "show-recipe mocose --json": 1,
    "train --recipe mocose --dry-run --json": 2,
    "data list --json": 2,
}
"""Commands that print JSON, and how deep their keys are those of the interface."""

SETTINGS = {**CORE_OPTIONS, "views": ViewOptions}
"""Tables of the core's own options."""

Description = dict[str, Any]


def described() -> Description:
    """Return the interface as it is now."""
    names = {module: None for modules in SECTIONS.values() for module in modules} | HANDED
    names |= IN_A_LINE["Files"][1]
    return {
        "hooks": {
            hook: " | ".join(record.__name__ for record in records)
            for hook, records in HOOK_RECORDS.items()
        },
        "names": {module: _module(module, only) for module, only in names.items()},
        "settings": {name: _fields(options) for name, options in SETTINGS.items()},
        "json": {command: _shape(command, depth) for command, depth in COMMANDS.items()},
    }


def written(description: Description) -> str:
    """Return it as the text of a file, with a line for each name."""
    return _lines(description, 3) + "\n"


def _lines(value: Any, depth: int) -> str:
    if not depth or not isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    inner = ",\n".join(
        f"{json.dumps(key)}: {_lines(each, depth - 1)}" for key, each in sorted(value.items())
    )
    return f"{{\n{inner}\n}}"


def _module(module: str, only: tuple[str, ...] | None) -> Description:
    found = vars(import_module(module))
    return {
        name: _named(value)
        for name, value in found.items()
        if not name.startswith("_") and name not in HIDDEN and name in (only or {name})
        if only or getattr(value, "__module__", module) == module
        if not inspect.ismodule(value) and name != "annotations"
    }


def _named(value: Any) -> Description:
    if inspect.isclass(value):
        return {
            "bases": [base.__name__ for base in value.__mro__[1:] if base is not object],
            "fields": _fields(value),
            "methods": dict(_methods(value)),
        }
    if inspect.isroutine(value):
        return {"parameters": _parameters(value)}
    if isinstance(value, tuple | frozenset | dict | str | int):
        return {"value": sorted(map(str, value)) if not isinstance(value, str | int) else value}
    return {"type": str(value)}


def _fields(model: Any) -> Description:
    if inspect.isclass(model) and issubclass(model, BaseModel):
        return {
            name: {"type": _annotation(model, name), "required": info.is_required()}
            for name, info in model.model_fields.items()
        }
    if is_dataclass(model):
        return {
            field.name: {
                "type": str(field.type),
                "required": field.default is MISSING and field.default_factory is MISSING,
            }
            for field in fields(model)
        }
    return {}


def _annotation(model: type, name: str) -> str:
    owners = (vars(base).get("__annotations__", {}) for base in model.__mro__)
    return next(str(each[name]) for each in owners if name in each)


def _methods(model: type) -> Iterator[tuple[str, Description]]:
    for name in dir(model):
        value = inspect.getattr_static(model, name)
        owner = next((base for base in model.__mro__ if name in vars(base)), object)
        if (name.startswith("_") and name != "__call__") or not owner.__module__.startswith("cse_"):
            continue
        if isinstance(value, property | cached_property):
            yield name, {"property": True}
        elif inspect.isroutine(value):
            plain = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            abstract = bool(getattr(value, "__isabstractmethod__", False))
            yield name, {"parameters": _parameters(plain), "abstract": abstract}


def _parameters(routine: Any) -> list[list[Any]]:
    """Return name, kind and whether it must be given, of each parameter."""
    return [
        [each.name, each.kind.name.lower(), each.default is each.empty]
        for each in inspect.signature(routine).parameters.values()
    ]


def _shape(command: str, depth: int) -> Description:
    """Return the keys that a command prints, by path, with the type of each."""
    out = StringIO()
    with redirect_stdout(out):
        assert run(command.split()) == 0, command
    found: Description = {}
    _keys(json.loads(out.getvalue()), "", depth, found)
    return {path: " or ".join(sorted(types)) for path, types in found.items()}


def _keys(value: Any, path: str, depth: int, found: Description) -> None:
    found.setdefault(path, set()).add(type(value).__name__)
    if isinstance(value, dict) and depth:
        for key, inner in value.items():
            _keys(inner, f"{path}.{key}", depth - 1, found)
    elif isinstance(value, list):
        for inner in value:
            _keys(inner, f"{path}[]", depth, found)
