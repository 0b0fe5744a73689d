"""A recipe as it is written: files and flags merged into names and values, not yet typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from cse_core.errors import CseError, collect_errors, did_you_mean
from cse_core.hookspecs import NOUNS
from cse_core.model_card import Declared
from cse_core.records import Kind
from cse_core.registry.registry import Registry
from cse_core.run_info import RunInfo
from cse_engine.compose.reading import (
    CONDITIONS,
    KINDS,
    TABLES,
    Document,
    check_name,
    model_document,
)
from cse_engine.compose.values import FlagText

Setting = tuple[str, Any]
"""A setting of the command line: its path, and its value, a :class:`FlagText` where it is typed."""


@dataclass
class Instance:
    """A part as a recipe or a flag names it.

    ``use`` is the name of its record as written, perhaps ``distribution/name``. ``near`` is the
    distribution of the recipe that names it, whose part is meant where several have the name.
    """

    use: str
    near: str = ""
    options: dict[str, Any] = field(default_factory=dict)


class Draft:
    """A recipe in the making: what is written, untyped.

    Attributes:
        facts: Facts of the model, as far as they are known.
        says: How the model says that it encodes.
        recipe: Name of the recipe, None without one.
        tables: Settings by their tables: ``params``, ``train``, ``views.positive``.
        parts: The parts of each kind by their names.
        notes: What was decided on the way, for the plan.
        warnings: What a user should look at.
        errors: Mistakes that were found on the way.
        origins: Where each setting of ``tables`` comes from, by its path.
        recorded: Origins of what an earlier run recorded, whose names are resolved already.
        versions: Versions of distributions that earlier runs recorded.
    """

    def __init__(self) -> None:
        self.facts, self.says = RunInfo(model=""), Declared()
        self.recipe: str | None = None
        self.tables: dict[str, dict[str, Any]] = {name: {} for name in TABLES}
        self.parts: dict[Kind, dict[str, Instance]] = {kind: {} for kind in KINDS}
        self.notes: list[str] = []
        self.warnings: list[str] = []
        self.errors: list[CseError] = []
        self.origins: dict[str, str] = {}
        self.recorded: set[str] = set()
        self.versions: dict[str, str] = {}

    def remove(self, kind: Kind, name: str, *, where: str) -> None:
        """Take an instance out."""
        if self.parts[kind].pop(name, None) is None:
            what = f"no {NOUNS[kind]} of this name to remove"
            raise CseError(what, where=where, value=name, hint=did_you_mean(name, self.parts[kind]))

    def merge(self, documents: Sequence[Document]) -> None:
        """Merge recipes, base first, each with its ``[[when]]`` blocks before the next.

        The model's own settings are behind those of the first, the default.
        """
        first, *others = documents
        self.recipe = documents[-1].name
        for document in (first, model_document(self.says, self.facts), *others):
            self._merge(document, document.label)
            blocks = [b for b in document.table.get("when", ()) if _holds(b, self.facts)]
            for block in sorted(blocks, key=lambda b: len(CONDITIONS.keys() & b)):
                keys = [key for key in CONDITIONS if key in block]
                when = "when " + ", ".join(f"{key} {_in_words(block[key])}" for key in keys)
                label = f"{document.label}: {when}"
                overlay = replace(document, table=block, label=label, overlay=True)
                changes = self._merge(overlay, f"{document.label} ({when})")
                self.notes.append(f"{label}: {'; '.join(changes)}" if changes else label)
                self.notes += [block["say"]] if "say" in block else []
            if document.overlay and "say" in document.table:
                self.notes.append(document.table["say"])

    def _merge(self, document: Document, origin: str) -> list[str]:
        """Merge a recipe or a block of one, and list the changes."""
        table, label, changes = document.table, document.label, list[str]()
        self.versions |= document.versions
        self.recorded |= {origin} if document.versions else set()
        for path in table.get("remove", ()):
            kind, _, name = path.partition(".")
            if kind not in KINDS:
                hint = did_you_mean(kind, KINDS)
                raise CseError("remove names kind.part", where=label, value=path, hint=hint)
            self.remove(kind, name, where=f"{label}: remove")
            changes.append(f"{path} removed")
        settings = {head: table.get(head, {}) for head in TABLES}
        settings |= {f"views.{name}": values for name, values in table.get("views", {}).items()}
        for head, values in settings.items():
            _update(self.tables.setdefault(head, {}), values)
            self.origins |= {f"{head}.{key}": origin for key in values}
            changes += [f"{head}.{key} = {_in_words(value)}" for key, value in values.items()]
        for kind in KINDS:
            if kind in table:
                changes += self.merge_parts(kind, document)
        return changes

    def merge_parts(self, kind: Kind, document: Document) -> list[str]:
        """Merge the parts of a kind; an overlay updates those of the same name."""
        label, changes, seen = document.label, list[str](), set[str]()
        if not document.overlay:
            self.parts[kind] = {}
        parts, items = self.parts[kind], document.table[kind]
        if kind == "pool" and items == [{"use": "model"}]:
            items = self.says.poolers()
        for item in items:
            options = {key: value for key, value in item.items() if key not in ("use", "name")}
            name = item.get("name", item.get("use", "").rpartition("/")[2])
            check_name(name, f"{label}: {kind}")
            if name in seen:
                raise _named_twice(kind, name, item.get("use", name), label)
            seen.add(name)
            use = item.get("use", parts[name].use if name in parts else "")
            if not use:
                what = f"no {NOUNS[kind]} has this name, and no 'use' says which part it is"
                raise CseError(what, where=label, value=name, hint=did_you_mean(name, parts))
            if name not in parts or parts[name].use != use:
                parts[name] = Instance(use, document.distribution)
            _update(parts[name].options, options)
            words = [f".{key} = {_in_words(value)}" for key, value in options.items()] or [""]
            changes += [f"{kind}.{name}{text}" for text in words]
        return changes

    def apply_kinds(self, kinds: Mapping[Kind, Sequence[str]]) -> None:
        """Apply kind flags: ``NAME`` replaces the list, ``+NAME`` adds, ``~NAME`` takes away.

        ``NAME`` may be ``distribution/part`` and may say what the instance is called,
        ``part:name``. ``--pool model`` are the poolers and heads of the model. Other poolers than
        the recipe's encode after training too: its ``inference.pool`` is dropped.
        """
        for kind, values in kinds.items():
            flag = f"--{kind}"
            if any(value[:1] not in ("+", "~") for value in values):
                names = ", ".join(self.parts[kind])
                self.notes += [f"{flag} replaces {names} of the recipe"] if names else []
                self.parts[kind] = {}
            for value in values:
                with collect_errors(self.errors):
                    if value.startswith("~"):
                        self.remove(kind, value[1:], where=flag)
                    elif kind == "pool" and value == "model":
                        table = {"pool": [{"use": "model"}]}
                        self.merge_parts(kind, Document(None, flag, table, overlay=True))
                    else:
                        owner, slash, rest = value.removeprefix("+").rpartition("/")
                        bare, _, name = rest.partition(":")
                        name, use = check_name(name or bare, flag), f"{owner}{slash}{bare}"
                        if name in self.parts[kind]:
                            raise _named_twice(kind, name, use, flag)
                        self.parts[kind][name] = Instance(use)
            if kind == "pool" and any(not value.startswith("+") for value in values):
                if pooler := self.tables["inference"].pop("pool", None):
                    self.notes.append(f"--pool drops inference.pool = {pooler} of the recipe")

    def apply_settings(self, settings: Sequence[Setting], registry: Registry) -> None:
        """Apply settings of the command line; their types are read later."""
        for path, value in settings:
            with collect_errors(self.errors):
                steps, table = path.split("."), self._table_at(path, registry)
                place = 1 if steps[0] in TABLES else 2
                self.origins[".".join(steps[: place + 1])] = "the command line"
                for step in reversed(steps[place + 1 :]):
                    value = {step: value}
                _update(table, {steps[place]: value})

    def _table_at(self, path: str, registry: Registry) -> dict[str, Any]:
        """Find the table or the options of a part that a path is about."""
        head, *rest = path.split(".")
        heads = (*TABLES, "views", *KINDS)
        if head not in heads:
            hint = did_you_mean(path, [".".join((name, *rest)) for name in heads])
            raise CseError("unknown option", where=path, hint=hint)
        if head in TABLES:
            if not rest:
                raise CseError("names no option", where=path, hint=f"write {head}.OPTION=VALUE")
            if head == "params" and ".".join(rest) not in self.tables[head]:
                hint = did_you_mean(rest[0], self.tables[head])
                raise CseError("the recipe has no such parameter", where=path, hint=hint)
            return self.tables[head]
        if len(rest) < 2:
            hint = f"write {head}.NAME.OPTION=VALUE"
            raise CseError("is not an option of a part", where=path, hint=hint)
        name, option = rest[0], ".".join(rest[1:])
        if head == "views":
            return self.tables.setdefault(f"views.{check_name(name, path)}", {})
        kind = cast(Kind, head)
        parts, installed = self.parts[kind], registry.has(kind, name)
        if installed and kind == "branch":
            parts.setdefault(name, Instance(name))
        if name not in parts:
            hint = f"this run has no {NOUNS[kind]}: add one with --{kind} NAME"
            if parts:
                hint = did_you_mean(path, [f"{kind}.{part}.{option}" for part in parts])
            hint = f"add it: --{kind} +{name}" if installed else hint
            raise CseError(f"this run has no {NOUNS[kind]} named {name}", where=path, hint=hint)
        return parts[name].options


def _holds(block: Mapping[str, Any], facts: RunInfo) -> bool:
    """Check whether all conditions of a ``[[when]]`` block hold; an unknown fact meets none."""
    for key in [key for key in CONDITIONS if key in block]:
        fact, condition = getattr(facts, key), block[key]
        accepted = condition if isinstance(condition, list) else [condition]
        if fact not in accepted and (fact is None or "any" not in accepted):
            return False
    return True


def _named_twice(kind: Kind, name: str, use: str, where: str) -> CseError:
    hint = f'give one another name: --{kind} +{use}:second, or [[{kind}]] use = "{use}", '
    hint += 'name = "second" in a recipe file'
    return CseError(f"another {NOUNS[kind]} has this name", where=where, value=name, hint=hint)


def _update(table: dict[str, Any], changes: Mapping[str, Any]) -> None:
    for key, value in changes.items():
        old = table.get(key)
        table[key] = old | value if isinstance(old, dict) and isinstance(value, dict) else value


def _in_words(value: object) -> str:
    if isinstance(value, list):
        return " or ".join(map(_in_words, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def parse_sets(sets: Sequence[str], errors: list[CseError]) -> list[Setting]:
    """Split settings of the command line, and add those that are none to ``errors``."""
    settings = []
    for text in sets:
        path, separator, value = text.partition("=")
        if separator and all(path.strip().split(".")):
            settings.append((path.strip(), FlagText(value.strip())))
        else:
            hint = "write --set train.lr=3e-5"
            errors.append(CseError("is not PATH=VALUE", where="--set", value=text, hint=hint))
    return settings
