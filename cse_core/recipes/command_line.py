"""Apply the command line's part flags and settings to a draft."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from cse_core.errors import CseError, did_you_mean, raise_all
from cse_core.recipes.draft import Draft, Instance, named_twice, remove_instance
from cse_core.recipes.reading import CORE_TABLES, KINDS, Document, check_name
from cse_core.records import Kind
from cse_core.registry.plugin_info import NOUNS
from cse_core.registry.registry import Registry


class FlagText(str):
    """A value as it was typed on the command line; its option's type says how to read it."""


def model_name(documents: Sequence[Document], sets: Sequence[str], model: str | None) -> str:
    """Return the encoder that a run will have, which decides its ``[[when]]`` blocks."""
    name: object = "starter"
    for document in documents:
        name = document.table.get("model", {}).get("name", name)
    name = name if model is None else model
    for text in sets:
        path, _, value = text.partition("=")
        if path.strip() == "model.name":
            name = value.strip().strip("\"'")
    return str(name)


def apply_kinds(draft: Draft, kinds: Mapping[Kind, Sequence[str]]) -> None:
    """Apply kind flags: ``NAME`` replaces the list, ``+NAME`` adds, ``~NAME`` takes away.

    ``NAME`` may be ``distribution/part`` and may say what the instance is called, ``part:name``.
    Other poolers than the recipe's encode after training too: its ``inference.pool`` is dropped.

    Raises:
        CseErrors: If an instance is named twice, or one to be taken away is not there.
    """
    errors: list[CseError] = []
    for kind, values in kinds.items():
        flag = f"--{kind}"
        if any(value[:1] not in ("+", "~") for value in values):
            before = [item.name for item in draft.parts[kind]]
            draft.parts[kind] = []
            if before:
                draft.notes.append(f"{flag} replaces {', '.join(before)} of the recipe")
        for value in values:
            try:
                if value.startswith("~"):
                    remove_instance(draft, kind, value[1:], where=flag)
                    continue
                owner, slash, rest = value.removeprefix("+").rpartition("/")
                bare, _, name = rest.partition(":")
                name = check_name(name or bare, flag)
                if draft.find(kind, name) is not None:
                    raise named_twice(kind, name, flag)
                draft.parts[kind].append(Instance(kind, f"{owner}{slash}{bare}", name))
            except CseError as error:
                errors.append(error)
        if kind == "pool" and any(not value.startswith("+") for value in values):
            pooler = draft.tables["inference"].pop("pool", None)
            if pooler is not None:
                draft.notes.append(f"--pool drops inference.pool = {pooler} of the recipe")
    raise_all(errors)


def apply_sets(draft: Draft, sets: Sequence[str], registry: Registry) -> None:
    """Apply ``path=value`` settings; a value's type is read later.

    Raises:
        CseErrors: If a text has another form, or a path leads nowhere.
    """
    errors: list[CseError] = []
    for text in sets:
        path, separator, value = text.partition("=")
        steps = path.strip().split(".")
        if not separator or not all(steps):
            hint = "write --set train.lr=3e-5"
            errors.append(CseError("is not PATH=VALUE", where="--set", value=text, hint=hint))
            continue
        try:
            _set(draft, steps, FlagText(value.strip()), registry)
        except CseError as error:
            errors.append(error)
    raise_all(errors)


def _set(draft: Draft, steps: Sequence[str], value: FlagText, registry: Registry) -> None:
    head, *rest = steps
    path = ".".join(steps)
    heads = (*CORE_TABLES, "params", "views", *KINDS)
    if head not in heads:
        paths = [f"{each}.{'.'.join(rest)}" for each in heads] if rest else heads
        raise CseError("there is no such option", where=path, hint=did_you_mean(path, paths))
    if head in KINDS or head == "views":
        if len(rest) < 2:
            hint = f"write {head}.NAME.OPTION=VALUE"
            raise CseError("names no option of a part", where=path, hint=hint)
        options = (
            draft.views.setdefault(check_name(rest[0], path), {})
            if head == "views"
            else _instance(draft, cast(Kind, head), rest[0], path, registry).options
        )
        rest = rest[1:]
    elif not rest:
        raise CseError("names no option", where=path, hint=f"write {head}.OPTION=VALUE")
    elif head == "params":
        if path.removeprefix("params.") not in draft.params:
            hint = did_you_mean(rest[0], draft.params)
            raise CseError("the recipe has no such parameter", where=path, hint=hint)
        options = draft.params
    else:
        options = draft.tables[head]
    for step in rest[:-1]:
        inner = options.get(step)
        inner = dict(inner) if isinstance(inner, Mapping) else {}
        options[step] = inner
        options = inner
    options[rest[-1]] = value


def _instance(draft: Draft, kind: Kind, name: str, path: str, registry: Registry) -> Instance:
    found = draft.find(kind, name)
    if found is None and kind == "branch" and registry.has(kind, name):
        found = Instance(kind, name, name)
        draft.parts[kind].append(found)
    if found is None:
        names = [item.name for item in draft.parts[kind]]
        if registry.has(kind, name):
            hint = f"add it: --{kind} +{name}"
        elif names:
            option = path.split(".", 2)[2]
            hint = did_you_mean(f"{kind}.{name}.{option}", [f"{kind}.{n}.{option}" for n in names])
        else:
            hint = f"this run has no {NOUNS[kind]}: add one with --{kind} NAME"
        raise CseError(f"this run has no {NOUNS[kind]} named {name}", where=path, hint=hint)
    return found
