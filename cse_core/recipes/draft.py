"""Merge recipes into one draft: names and values, not yet typed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cse_core.errors import CseError, did_you_mean
from cse_core.recipes.reading import CONDITIONS, CORE_TABLES, KINDS, Document, check_name
from cse_core.records import Facts, Kind
from cse_core.registry.plugin_info import NOUNS


@dataclass
class Instance:
    """A part as a recipe or a flag names it.

    Attributes:
        use: Name of its record, as written: perhaps ``distribution/name``.
    """

    kind: Kind
    use: str
    name: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Return ``kind.name``."""
        return f"{self.kind}.{self.name}"


@dataclass(frozen=True)
class WhenNote:
    """What a ``[[when]]`` block changed; flags may yet replace the parts that it changed.

    Attributes:
        changes: Each with the instance that it is about, None where that is none.
        say: The block's own words.
    """

    label: str
    changes: tuple[tuple[Instance | None, str], ...]
    say: str | None


@dataclass
class Draft:
    """A recipe in the making.

    Attributes:
        tables: Options of ``model``, ``data``, ``train`` and ``inference``.
        notes: What was decided on the way, for the plan.
    """

    params: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {name: {} for name in CORE_TABLES}
    )
    views: dict[str, dict[str, Any]] = field(default_factory=dict)
    parts: dict[Kind, list[Instance]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    notes: list[str | WhenNote] = field(default_factory=list)

    def told(self) -> list[str]:
        """Return the notes, without what they say of instances that are there no more.

        A flag that replaces a list makes new instances, of the same names perhaps, and what a block
        set of the old ones does not count for them.
        """
        lines: list[str] = []
        for note in self.notes:
            if isinstance(note, str):
                lines.append(note)
                continue
            kept = [text for each, text in note.changes if each is None or self._has(each)]
            lines.append(f"{note.label}: {'; '.join(kept)}" if kept else note.label)
            new = [
                each.path
                for each, _ in note.changes
                if each is not None and not self._has(each) and self.find(each.kind, each.name)
            ]
            if new:
                paths = " and ".join(dict.fromkeys(new))
                lines.append(f"{note.label}: nothing for {paths}, which was replaced after it")
            elif note.say is not None:
                lines.append(note.say)
        return lines

    def _has(self, instance: Instance) -> bool:
        return any(each is instance for each in self.parts[instance.kind])

    def find(self, kind: Kind, name: str) -> Instance | None:
        """Return an instance by its name."""
        return next((item for item in self.parts[kind] if item.name == name), None)

    def instances(self) -> list[Instance]:
        """Return the instances of all kinds."""
        return [item for kind in KINDS for item in self.parts[kind]]


def merge_documents(documents: Sequence[Document], facts: Facts) -> Draft:
    """Merge recipes, base first, each with its ``[[when]]`` blocks before the next.

    Raises:
        CseError: If an instance is named twice, or one to be taken away is not there.
    """
    draft = Draft()
    for document in documents:
        merge_table(draft, document.table, document.label, overlay=document.overlay)
        blocks = [block for block in document.table.get("when", ()) if _holds(block, facts)]
        for block in sorted(blocks, key=lambda block: sum(key in block for key in CONDITIONS)):
            told = ", ".join(f"{key} {_plain(block[key])}" for key in CONDITIONS if key in block)
            label = f"{document.label}: when {told}"
            merge_table(draft, block, label, overlay=True)
            say = str(block["say"]) if "say" in block else None
            draft.notes.append(WhenNote(label, tuple(_changes(block, draft)), say))
        if document.overlay and "say" in document.table:
            draft.notes.append(str(document.table["say"]))
    return draft


def merge_table(draft: Draft, table: Mapping[str, Any], label: str, *, overlay: bool) -> None:
    """Merge a recipe's table into a draft.

    Args:
        draft: What there is; changed in place.
        table: The table.
        label: How messages name it.
        overlay: Whether items of a list are matched by name and updated; else a list replaces.

    Raises:
        CseError: If an instance is named twice, or one to be taken away is not there.
    """
    for name, value in table.get("params", {}).items():
        draft.params[check_name(name, f"{label}: params")] = value
    for name in CORE_TABLES:
        _update(draft.tables[name], table.get(name, {}))
    for name, settings in table.get("views", {}).items():
        _update(draft.views.setdefault(name, {}), settings)
    for path in table.get("remove", ()):
        kind, _, name = path.partition(".")
        if kind not in KINDS:
            raise CseError(
                "remove names kind.part", where=label, value=path, hint=did_you_mean(kind, KINDS)
            )
        remove_instance(draft, kind, name, where=f"{label}: remove")
    for kind in KINDS:
        if kind in table:
            _merge_items(draft, kind, table[kind], label, overlay=overlay)


def _merge_items(
    draft: Draft, kind: Kind, items: Sequence[Mapping[str, Any]], label: str, *, overlay: bool
) -> None:
    if not overlay:
        draft.parts[kind] = []
    seen: set[str] = set()
    for item in items:
        options = {key: value for key, value in item.items() if key not in ("use", "name")}
        bare = item["use"].rpartition("/")[2] if "use" in item else ""
        name = check_name(item.get("name", bare), f"{label}: {kind}")
        if name in seen:
            raise named_twice(kind, name, label)
        seen.add(name)
        found = draft.find(kind, name)
        use = item.get("use", found.use if found else "")
        if not use:
            raise CseError(
                f"there is no {NOUNS[kind]} of this name to change, and no use says what it is",
                where=label,
                value=name,
                hint=did_you_mean(name, [other.name for other in draft.parts[kind]]),
            )
        if found is None:
            draft.parts[kind].append(Instance(kind, use, name, options))
        elif found.use != use:
            found.use, found.options = use, options
        else:
            _update(found.options, options)


def remove_instance(draft: Draft, kind: Kind, name: str, *, where: str) -> None:
    """Take an instance out of a draft.

    Raises:
        CseError: If there is none of this name.
    """
    found = draft.find(kind, name)
    if found is None:
        raise CseError(
            f"there is no {NOUNS[kind]} of this name to take away",
            where=where,
            value=name,
            hint=did_you_mean(name, [item.name for item in draft.parts[kind]]),
        )
    draft.parts[kind].remove(found)


def named_twice(kind: Kind, name: str, where: str) -> CseError:
    """Return the error of a second instance of one name."""
    return CseError(
        f"another {NOUNS[kind]} has this name",
        where=where,
        value=name,
        hint=f'give one another: --{kind} +{name}:second, or [[{kind}]] use = "{name}", '
        'name = "second" in a recipe file',
    )


def _update(table: dict[str, Any], changes: Mapping[str, Any]) -> None:
    for key, value in changes.items():
        old = table.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            table[key] = {**old, **value}
        else:
            table[key] = value


def _holds(block: Mapping[str, Any], facts: Facts) -> bool:
    for key in CONDITIONS:
        if key in block:
            wanted = block[key] if isinstance(block[key], list) else [block[key]]
            if getattr(facts, key) not in wanted or getattr(facts, key) is None:
                return False
    return True


def _changes(block: Mapping[str, Any], draft: Draft) -> Iterator[tuple[Instance | None, str]]:
    """Yield what a merged block changed, each with the instance of the draft that it is about."""
    for path in block.get("remove", ()):
        yield None, f"{path} taken out"
    for head in ("params", *CORE_TABLES):
        for key, value in block.get(head, {}).items():
            yield None, f"{head}.{key} = {_plain(value)}"
    for view, settings in block.get("views", {}).items():
        for key, value in settings.items():
            yield None, f"views.{view}.{key} = {_plain(value)}"
    for kind in KINDS:
        for item in block.get(kind, ()):
            name = item.get("name") or item["use"].rpartition("/")[2]
            options = {key: value for key, value in item.items() if key not in ("use", "name")}
            changed = draft.find(kind, name)
            for key, value in options.items():
                yield changed, f"{kind}.{name}.{key} = {_plain(value)}"
            if not options:
                yield changed, f"{kind}.{name}"


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return " or ".join(_plain(item) for item in value)
    return str(value)
