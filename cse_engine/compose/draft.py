"""A recipe as it is written: files and flags merged into names and values, not yet typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

from cse_core.errors import CseError, collect_errors, did_you_mean, raise_all
from cse_core.hookspecs import NOUNS
from cse_core.records import Kind
from cse_core.registry.registry import Registry
from cse_core.run_info import RunInfo
from cse_engine.compose.reading import CONDITIONS, CORE_TABLES, KINDS, Document, check_name
from cse_engine.compose.values import FlagText

COMMAND_LINE = "the command line"
"""Origin of settings that are typed."""


@dataclass
class Instance:
    """A part as a recipe or a flag names it.

    ``use`` is the name of its record as written, perhaps ``distribution/name``. ``near`` is the
    distribution of the recipe that names it, whose part is meant where several have the name.
    """

    kind: Kind
    use: str
    name: str
    options: dict[str, Any] = field(default_factory=dict)
    near: str = ""

    @property
    def path(self) -> str:
        """Return ``kind.name``."""
        return f"{self.kind}.{self.name}"


@dataclass
class Draft:
    """A recipe in the making: what is written, untyped.

    Attributes:
        recipe: Name of the recipe, None without one.
        tables: The parameters and the core's own options by their tables.
        views: Settings of views by their names.
        parts: The parts of each kind by their names.
        notes: What was decided on the way, for the plan.
        origins: Where each setting of ``tables`` and ``views`` comes from, by its path.
        recorded: Paths of those that an earlier run recorded, whose names are resolved already.
    """

    recipe: str | None = None

    tables: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {name: {} for name in ("params", *CORE_TABLES)}
    )
    views: dict[str, dict[str, Any]] = field(default_factory=dict)
    parts: dict[Kind, dict[str, Instance]] = field(
        default_factory=lambda: {kind: {} for kind in KINDS}
    )
    notes: list[str] = field(default_factory=list)
    origins: dict[str, str] = field(default_factory=dict)
    recorded: set[str] = field(default_factory=set)

    def write(
        self, head: str, values: Mapping[str, Any], origin: str, *, recorded: bool = False
    ) -> None:
        """Write settings of a table, ``train``, or of a view, ``views.positive``."""
        table, _, name = head.partition(".")
        _update(self.views.setdefault(name, {}) if name else self.tables[table], values)
        for key in values:
            self.mark(f"{head}.{key}", origin, recorded=recorded)

    def mark(self, path: str, origin: str, *, recorded: bool = False) -> None:
        """Remember where a setting comes from."""
        self.origins[path] = origin
        self.recorded.discard(path)
        if recorded:
            self.recorded.add(path)

    def remove(self, kind: Kind, name: str, *, where: str) -> None:
        """Take an instance out."""
        if self.parts[kind].pop(name, None) is None:
            what = f"no {NOUNS[kind]} of this name to remove"
            raise CseError(what, where=where, value=name, hint=did_you_mean(name, self.parts[kind]))


class Setting(NamedTuple):
    """A setting of the command line, ``PATH=VALUE``."""

    path: str
    value: FlagText


def parse_sets(sets: Sequence[str]) -> tuple[list[Setting], list[CseError]]:
    """Split settings of the command line; those that are none are returned as errors."""
    settings, errors = list[Setting](), list[CseError]()
    for text in sets:
        path, separator, value = text.partition("=")
        if separator and all(path.strip().split(".")):
            settings.append(Setting(path.strip(), FlagText(value.strip())))
        else:
            hint = "write --set train.lr=3e-5"
            errors.append(CseError("is not PATH=VALUE", where="--set", value=text, hint=hint))
    return settings, errors


def merge_documents(documents: Sequence[Document], facts: RunInfo) -> Draft:
    """Merge recipes, base first, each with its ``[[when]]`` blocks before the next."""
    draft = Draft(recipe=documents[-1].name)
    for document in documents:
        _merge(draft, document, document.label)
        blocks = [block for block in document.table.get("when", ()) if _holds(block, facts)]
        for block in sorted(blocks, key=lambda block: sum(key in block for key in CONDITIONS)):
            conditions = [f"{key} {_in_words(block[key])}" for key in CONDITIONS if key in block]
            when = f"when {', '.join(conditions)}"
            label = f"{document.label}: {when}"
            overlay = replace(document, table=block, label=label, overlay=True)
            changes = _merge(draft, overlay, f"{document.label} ({when})")
            draft.notes.append(f"{label}: {'; '.join(changes)}" if changes else label)
            draft.notes += [block["say"]] if "say" in block else []
        if document.overlay and "say" in document.table:
            draft.notes.append(str(document.table["say"]))
    return draft


def _holds(block: Mapping[str, Any], facts: RunInfo) -> bool:
    """Check whether all conditions of a ``[[when]]`` block hold; an unknown fact meets none."""
    for key in [key for key in CONDITIONS if key in block]:
        fact, condition = getattr(facts, key), block[key]
        accepted = condition if isinstance(condition, list) else [condition]
        if fact not in accepted and (fact is None or "any" not in accepted):
            return False
    return True


def _merge(draft: Draft, document: Document, origin: str) -> list[str]:
    """Merge a recipe or a block of one, and list the changes."""
    table, label, changes = document.table, document.label, list[str]()
    for path in table.get("remove", ()):
        kind, _, name = path.partition(".")
        if kind not in KINDS:
            hint = did_you_mean(kind, KINDS)
            raise CseError("remove names kind.part", where=label, value=path, hint=hint)
        draft.remove(kind, name, where=f"{label}: remove")
        changes.append(f"{path} removed")
    for name in table.get("params", {}):
        check_name(name, f"{label}: params")
    settings = {head: table.get(head, {}) for head in draft.tables}
    settings |= {f"views.{name}": values for name, values in table.get("views", {}).items()}
    for head, values in settings.items():
        draft.write(head, values, origin, recorded=bool(document.versions))
        changes += [f"{head}.{key} = {_in_words(value)}" for key, value in values.items()]
    for kind in KINDS:
        if kind in table:
            changes += _merge_items(draft, kind, document)
    return changes


def _merge_items(draft: Draft, kind: Kind, document: Document) -> list[str]:
    """Merge the parts of a kind; an overlay updates those of the same name."""
    label, near = document.label, document.distribution
    if not document.overlay:
        draft.parts[kind] = {}
    changes: list[str] = []
    seen: set[str] = set()
    for item in document.table[kind]:
        options = {key: value for key, value in item.items() if key not in ("use", "name")}
        name = str(item.get("name", item.get("use", "").rpartition("/")[2]))
        check_name(name, f"{label}: {kind}")
        if name in seen:
            raise _named_twice(kind, name, item.get("use", name), label)
        seen.add(name)
        part = draft.parts[kind].get(name)
        use = item.get("use", part.use if part else "")
        if not use:
            what = f"no {NOUNS[kind]} of this name to change, and no 'use' says which part it is"
            hint = did_you_mean(name, draft.parts[kind])
            raise CseError(what, where=label, value=name, hint=hint)
        if part is None:
            part = draft.parts[kind][name] = Instance(kind, use, name, near=near)
        if part.use != use:
            part.use, part.options, part.near = use, {}, near
        _update(part.options, options)
        words = [f".{key} = {_in_words(value)}" for key, value in options.items()] or [""]
        changes += [part.path + text for text in words]
    return changes


def _named_twice(kind: Kind, name: str, use: str, where: str) -> CseError:
    return CseError(
        f"another {NOUNS[kind]} has this name",
        where=where,
        value=name,
        hint=f'give one another name: --{kind} +{use}:second, or [[{kind}]] use = "{use}", '
        'name = "second" in a recipe file',
    )


def _update(table: dict[str, Any], changes: Mapping[str, Any]) -> None:
    for key, value in changes.items():
        old = table.get(key)
        merged = isinstance(old, Mapping) and isinstance(value, Mapping)
        table[key] = {**old, **value} if merged else value  # type: ignore[dict-item]


def _in_words(value: object) -> str:
    if isinstance(value, list):
        return " or ".join(_in_words(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def apply_kinds(draft: Draft, kinds: Mapping[Kind, Sequence[str]], model: Document) -> None:
    """Apply kind flags: ``NAME`` replaces the list, ``+NAME`` adds, ``~NAME`` takes away.

    ``NAME`` may be ``distribution/part`` and may say what the instance is called, ``part:name``.
    ``--pool model`` are the poolers and heads of the document ``model``. Other poolers than the
    recipe's encode after training too: its ``inference.pool`` is dropped.

    Raises:
        CseError: All mistakes together.
    """
    errors: list[CseError] = []
    for kind, values in kinds.items():
        flag = f"--{kind}"
        if any(value[:1] not in ("+", "~") for value in values):
            before = draft.parts[kind]
            draft.parts[kind] = {}
            if before:
                draft.notes.append(f"{flag} replaces {', '.join(before)} of the recipe")
        for value in values:
            with collect_errors(errors):
                if value.startswith("~"):
                    draft.remove(kind, value[1:], where=flag)
                    continue
                if kind == "pool" and value == "model":
                    _merge_items(draft, kind, replace(model, label=flag, overlay=True))
                    continue
                owner, slash, rest = value.removeprefix("+").rpartition("/")
                bare, _, name = rest.partition(":")
                name = check_name(name or bare, flag)
                use = f"{owner}{slash}{bare}"
                if name in draft.parts[kind]:
                    raise _named_twice(kind, name, use, flag)
                draft.parts[kind][name] = Instance(kind, use, name)
        if kind == "pool" and any(not value.startswith("+") for value in values):
            pooler = draft.tables["inference"].pop("pool", None)
            if pooler is not None:
                draft.notes.append(f"--pool drops inference.pool = {pooler} of the recipe")
    raise_all(errors)


def apply_sets(draft: Draft, settings: Sequence[Setting], registry: Registry) -> None:
    """Apply settings of the command line; their types are read later.

    Raises:
        CseError: All mistakes together.
    """
    errors: list[CseError] = []
    for path, value in settings:
        with collect_errors(errors):
            options, inner = _options_at(draft, path.split("."), registry)
            draft.mark(path.removesuffix("." + ".".join(inner[1:])), COMMAND_LINE)
            for step in inner[:-1]:
                table = options.get(step)
                options[step] = dict(table) if isinstance(table, Mapping) else {}
                options = options[step]
            options[inner[-1]] = value
    raise_all(errors)


def _options_at(
    draft: Draft, steps: Sequence[str], registry: Registry
) -> tuple[dict[str, Any], Sequence[str]]:
    """Return the table that a path is about, and the steps that are left inside it."""
    head, *rest = steps
    path = ".".join(steps)
    heads = (*draft.tables, "views", *KINDS)
    if head not in heads:
        paths = [".".join((known, *rest)) for known in heads]
        raise CseError("unknown option", where=path, hint=did_you_mean(path, paths))
    if head in draft.tables:
        if not rest:
            raise CseError("names no option", where=path, hint=f"write {head}.OPTION=VALUE")
        if head == "params" and ".".join(rest) not in draft.tables[head]:
            hint = did_you_mean(rest[0], draft.tables[head])
            raise CseError("the recipe has no such parameter", where=path, hint=hint)
        return draft.tables[head], rest
    if len(rest) < 2:
        hint = f"write {head}.NAME.OPTION=VALUE"
        raise CseError("is not an option of a part", where=path, hint=hint)
    if head == "views":
        return draft.views.setdefault(check_name(rest[0], path), {}), rest[1:]
    return _instance(draft, cast(Kind, head), rest, registry).options, rest[1:]


def _instance(draft: Draft, kind: Kind, steps: Sequence[str], registry: Registry) -> Instance:
    name, option = steps[0], ".".join(steps[1:])
    names = draft.parts[kind]
    if name not in names and kind == "branch" and registry.has(kind, name):
        names[name] = Instance(kind, name, name)
    if name not in names:
        if registry.has(kind, name):
            hint = f"add it: --{kind} +{name}"
        elif names:
            hint = did_you_mean(f"{kind}.{name}.{option}", [f"{kind}.{n}.{option}" for n in names])
        else:
            hint = f"this run has no {NOUNS[kind]}: add one with --{kind} NAME"
        where = f"{kind}.{name}.{option}"
        raise CseError(f"this run has no {NOUNS[kind]} named {name}", where=where, hint=hint)
    return names[name]
