"""Recipes as data: reading TOML files, finding installed ones, following ``extends``, writing."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cse_core.errors import CseError, did_you_mean
from cse_core.files import RUN_FILE, file_text
from cse_core.hookspecs import COMPONENT_SPECS
from cse_core.loading import package_path
from cse_core.model_card import Declared
from cse_core.records import Kind, RecipeSpec
from cse_core.registry.registry import Registry
from cse_core.run_info import RunInfo
from cse_engine.compose.settings import CORE_OPTIONS

KINDS: tuple[Kind, ...] = tuple(COMPONENT_SPECS)
"""Kinds of parts in the order in which recipes list them."""
CORE_TABLES = tuple(CORE_OPTIONS)
"""Tables of the core's own options, beside ``views``."""
TABLES = ("params", *CORE_TABLES)
"""Those, and that of the parameters."""
CONDITIONS = {"family": str, "hidden": int, "cased": bool, "origin": str}
"""Keys of a ``[[when]]`` block that say when it counts, with their types."""

_MAX_NAME_CHARACTERS = 100
_MAX_ENTRIES = 1_000
"""Of a table or list; what is done with them takes a time that grows with their square."""
_TEXTS = ("name", "summary", "paper", "say")
_SETTINGS = (*TABLES, "views", *KINDS, "remove")
_KEYS = (*_TEXTS, "run", "versions", "extends", *_SETTINGS, "when")
_WHEN_KEYS = (*CONDITIONS, "say", *_SETTINGS)
_SHAPES: dict[str, tuple[Any, type, str, str | None]] = {
    **{key: (str, str, "a text", None) for key in _TEXTS},
    **{key: (dict, object, "a table", f"write [{key}]") for key in (*TABLES, "views")},
    **{key: (list, dict, "a list of tables", f"write [[{key}]]") for key in (*KINDS, "when")},
    "remove": (list, str, "a list of parts", 'write remove = ["aug.NAME"]'),
    "extends": (str, str, "the name or file of one recipe", None),
}
"""What a key of a recipe holds: the types of it and of what is in it, its noun, how to write it."""


@dataclass(frozen=True)
class Document:
    """A recipe file that was read, its shape checked, its values not yet.

    Attributes:
        name: The recipe's name, for the plan; None of the default.
        label: How messages name it.
        table: Its content without ``run`` and ``versions``.
        overlay: Whether it goes over a base that it extends.
        versions: Versions that an earlier run recorded, by distribution.
        distribution: That which brings it; empty for a file.
    """

    name: str | None
    label: str
    table: Mapping[str, Any]
    overlay: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)
    distribution: str = ""


def default_document(*, alone: bool = True) -> Document:
    """Return the recipe of a run that names none, or what one that names another stands on."""
    table = read_toml(Path(__file__).with_name("default.toml"), "the default recipe")
    if not alone:
        del table["when"]
    return Document(None, "the default recipe", table)


def model_document(says: Declared, facts: RunInfo) -> Document:
    """Write how a model says that it encodes as a recipe, on which that of the run stands."""
    inference = says.inference()
    longest = min(facts.positions or 10**9, 10**9)
    if inference.get("max_length", longest) >= longest:  # what the encoder takes: the default
        inference.pop("max_length", None)
    table: dict[str, Any] = {"inference": inference}
    if says.default_prompt_name is not None:
        table["model"] = {"prompt": says.default_prompt_name}
    if says.row is not None:
        table["pool"] = says.poolers()
    elif facts.causal:  # its first token sees nothing but itself
        table["pool"] = [{"use": "last-token"}]
    return Document("model", "the model", table)


def read_recipe(recipe: str | Path, registry: Registry) -> tuple[Document, ...]:
    """Read a recipe and those that it extends.

    ``recipe`` is the name of an installed one, a TOML file, or the folder of a run; the base comes
    first.
    """
    chain: list[Document] = []
    paths: list[Path] = []
    base: str | Path | None = recipe
    where, folder = "recipe", Path()
    while base is not None:
        path, name, label, distribution = _locate(base, registry, where, folder)
        if path.resolve() in paths:
            raise CseError("extends itself", where=label, hint="remove one extends line")
        paths.append(path.resolve())
        chain.append(_document(read_toml(path, label), name, label, distribution))
        base, where, folder = chain[-1].table.get("extends"), f"{label}: extends", path.parent
    return tuple(reversed(chain))


def check_name(name: str, where: str) -> str:
    """Return the name of an instance, a view or a parameter if it can stand in an option path."""
    if len(name) <= _MAX_NAME_CHARACTERS and re.sub("[-_]", "", name).isalnum():
        return name
    what = f"a name is letters, digits, - and _, at most {_MAX_NAME_CHARACTERS}"
    raise CseError(what, where=where, value=name)


def _locate(
    recipe: str | Path, registry: Registry, where: str, folder: Path
) -> tuple[Path, str, str, str]:
    """Return the file of a recipe, its name, how messages name it, and its distribution."""
    text = str(recipe)
    if isinstance(recipe, str) and registry.has("recipe", recipe):
        entry = registry.one(RecipeSpec, recipe, where=where)
        path = package_path(entry.spec.path, where=f"recipe {entry.name}")
        return path, entry.name, f"recipe {entry.name}", entry.distribution
    path = folder / Path(text).expanduser()
    path = path if os.path.exists(path) else Path(text).expanduser()
    if os.path.isdir(path):
        if not (path / RUN_FILE).is_file():
            hint = "name a recipe, a TOML file or the folder of a run"
            raise CseError(f"is a folder without {RUN_FILE}", where=where, value=text, hint=hint)
        return path / RUN_FILE, path.name, str(path / RUN_FILE), ""
    if os.path.exists(path):
        name = path.absolute().parent.name if path.name == RUN_FILE else path.stem
        return path, name, text, ""
    if isinstance(recipe, str) and path.suffix != ".toml" and "/" not in text and "\\" not in text:
        registry.one(RecipeSpec, recipe, where=where)
    names = [entry.name for entry in registry.all(RecipeSpec)]
    hint = f"installed recipes: {', '.join(names)}" if names else "no recipe is installed"
    raise CseError("no such recipe file", where=where, value=text, hint=hint)


def parse_toml(text: str, number: Callable[[str], float] = float) -> dict[str, Any]:
    """Parse TOML; text that is none, or too deep, raises a ``ValueError``."""
    try:
        table = tomllib.loads(text, parse_float=number)
        repr(table)  # where Python cannot print a value, no message could
        return table
    except RecursionError:
        raise ValueError("its brackets are nested too deeply") from None


def read_toml(path: Path, label: str, number: Callable[[str], float] = float) -> dict[str, Any]:
    """Read a TOML file; ``number`` makes its floats. One that cannot be read is a ``CseError``."""
    try:
        return parse_toml(file_text(path), number)
    except UnicodeDecodeError as error:
        hint = "save it as UTF-8"
        raise CseError(f"is not UTF-8 text (byte {error.start})", where=label, hint=hint) from None
    except ValueError as error:
        raise CseError(f"is not valid TOML: {error}", where=label) from None
    except OSError as error:
        raise CseError(f"cannot be read: {error.strerror or error}", where=label) from None


def _document(table: dict[str, Any], name: str, label: str, distribution: str) -> Document:
    table.pop("run", None)
    versions = table.pop("versions", None)
    _check_shape(table, label, _KEYS)
    for number, block in enumerate(table.get("when", []), 1):
        where = f"{label}: when {number}"
        _check_shape(block, where, _WHEN_KEYS)
        if not any(key in block for key in CONDITIONS):
            hint = f"add one of {', '.join(CONDITIONS)}"
            raise CseError("has no condition", where=where, hint=hint)
        if "name" in block.get("model", {}):
            raise CseError("cannot choose model.name, which decides it", where=where)
        for key, kind in CONDITIONS.items():
            value = block.get(key, "any")
            values = value if isinstance(value, list) and value else [value]
            if not all(type(item) is kind or item == "any" for item in values):
                nouns = {str: "a text", int: "an integer", bool: "true or false"}
                hint = f"{nouns[kind]}, any, or a list of these"
                raise CseError("wrong type", where=f"{where}: {key}", value=value, hint=hint)
    versions = versions if isinstance(versions, dict) else {}
    recorded = {key: text for key, text in versions.items() if isinstance(text, str)}
    name = table.get("name", name)
    if not name.isprintable() or len(name) > _MAX_NAME_CHARACTERS:  # it stands in files and paths
        what = f"a recipe's name is one line of at most {_MAX_NAME_CHARACTERS} printable characters"
        raise CseError(what, where=label, value=name, hint='write name = "NAME" in it')
    return Document(name, label, table, "extends" in table, recorded, distribution)


def _check_shape(table: Mapping[str, Any], label: str, keys: tuple[str, ...]) -> None:
    for key, content in table.items():
        if key not in keys:
            hint = did_you_mean(key, keys)
            raise CseError(f"a recipe has no key {key!r}", where=label, hint=hint)
        if key not in _SHAPES:
            continue
        kind, items, noun, write = _SHAPES[key]
        if not isinstance(content, kind) or not all(isinstance(value, items) for value in content):
            raise CseError(f"{key} is {noun}", where=label, value=content, hint=write)
        if kind is not str and len(content) > _MAX_ENTRIES:
            what = f"{key} has {len(content):,} entries, more than {_MAX_ENTRIES:,}"
            raise CseError(what, where=label)
    for key in ("params", "views"):
        for name in table.get(key, {}):
            check_name(name, f"{label}: {key}")
    for name, settings in table.get("views", {}).items():
        if not isinstance(settings, dict):
            hint = f"write [views.{name}]"
            raise CseError(f"views.{name} is a table", where=label, value=settings, hint=hint)
    for head, item in [(kind, item) for kind in KINDS for item in table.get(kind, [])]:
        if "use" not in item and "name" not in item:
            raise CseError(f"a [[{head}]] has no use", where=label, hint='write use = "PART"')
        for key in ("use", "name"):
            if not isinstance(item.get(key, ""), str):
                raise CseError(f"{key} is a text", where=f"{label}: {head}", value=item[key])
