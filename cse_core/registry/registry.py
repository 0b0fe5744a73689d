"""All parts of all loaded plugins, by kind and name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from types import SimpleNamespace
from typing import Any, Generic, SupportsFloat, TypeVar, cast

from cse_core.capabilities import Need
from cse_core.errors import CseError, PartError, did_you_mean, truncate_repr
from cse_core.hookspecs import COMPONENT_SPECS, CORE_VIEWS, NOUNS
from cse_core.loading import load_factory
from cse_core.records import ComponentSpec, Kind, Record, ScheduleSpec, SourceSpec, ViewSpec
from cse_core.registry.plugin_info import TOOLKIT, KnownPart, PluginInfo, canonical
from cse_core.schedule import CURVES, Curve

RecordT = TypeVar("RecordT", bound=Record, covariant=True)
_WHERE = {
    "encoder": "model.name", "source": "data.path", "suite": "--suite", "reporter": "train.report",
}  # fmt: skip
"""Options that name records, beside those of the same name."""


@dataclass(frozen=True)
class Registered(Generic[RecordT]):
    """A record and the plugin that brings it.

    Attributes:
        plugin: Key of the plugin, ``distribution:entry-point``.
    """

    spec: RecordT
    distribution: str
    version: str
    plugin: str

    @property
    def name(self) -> str:
        """Return the record's name."""
        return self.spec.name

    @property
    def qualified(self) -> str:
        """Return the name that means this one only, ``distribution/name``."""
        return f"{self.distribution}/{self.spec.name}"

    @property
    def label(self) -> str:
        """Return distribution and version, as messages name it."""
        return f"{self.distribution} {self.version}".strip()


class Registry:
    """Every part of every loaded plugin.

    A name may be qualified by its distribution, ``cse-toolkit/infonce``, or by its plugin's key,
    ``cse-toolkit:basics/infonce``; it must be where two plugins bring a part of one name, and
    neither is the distribution of the recipe that names it or the toolkit itself.
    ``plugins`` say what became of each plugin, ``known`` which parts others bring, and
    ``elsewhere(name)`` who else may bring a part, all for hints.
    """

    def __init__(
        self,
        parts: Iterable[Registered[Record]],
        plugins: Iterable[PluginInfo] = (),
        known: Sequence[KnownPart] = (),
        elsewhere: Callable[[str], str] = lambda name: "",
    ) -> None:
        self._parts: dict[str, list[Registered[Record]]] = {}
        for part in parts:
            self._parts.setdefault(part.spec.kind, []).append(part)
        for records in self._parts.values():
            records.sort(key=lambda part: (part.name, part.plugin))
        self.plugins = tuple(plugins)
        self.known, self.elsewhere = known, elsewhere

    @classmethod
    def from_plugins(cls, infos: Iterable[PluginInfo], *hints: Any) -> Registry:
        """Register the parts of the plugins that are loaded; ``hints`` are those of the class."""
        plugins = tuple(infos)
        parts = (
            Registered(part, info.distribution, info.version, info.key)
            for info in plugins
            for part in info.parts
        )
        return cls(parts, plugins, *hints)

    def parts(self, kind: Kind | None = None) -> tuple[Registered[ComponentSpec], ...]:
        """Return the parts of a kind sorted by name, or those of all kinds."""
        kinds = COMPONENT_SPECS if kind is None else (kind,)
        return tuple(part for name in kinds for part in self.all(COMPONENT_SPECS[name]))

    def all(self, record: type[RecordT]) -> tuple[Registered[RecordT], ...]:
        """List the records of a class, sorted by name."""
        return cast(tuple[Registered[RecordT], ...], tuple(self._parts.get(record.kind, ())))

    def one(
        self, record: type[RecordT], name: str, *, where: str | None = None, near: str = ""
    ) -> Registered[RecordT]:
        """Get the record of a class that a name means.

        Args:
            record: The class.
            name: Its name, qualified or not.
            where: The option that names it, for errors.
            near: The distribution whose record is meant where several have the name.

        Raises:
            CseError: If there is none, or more than one.
        """
        kind = record.kind
        where, matches = where or _WHERE.get(kind, kind), self._matching(kind, name)
        for owner in (near, TOOLKIT):
            matches = [part for part in matches if part.distribution == owner] or matches
        if len(matches) == 1:
            return cast(Registered[RecordT], matches[0])
        if not matches:
            hint = self._hint(kind, name)
            raise CseError(f"unknown {NOUNS[kind]}", where=where, value=name, hint=hint)
        what = f"more than one {NOUNS[kind]} has this name"
        hint = f"write {' or '.join(f'{part.plugin}/{part.name}' for part in matches)}"
        raise CseError(what, where=where, value=name, hint=hint)

    @property
    def views(self) -> dict[str, ViewSpec]:
        """Return the views that recipes can name, the core's first.

        Raises:
            CseError: If two plugins declare one view.
        """
        added = (self.one(ViewSpec, part.name, where="views").spec for part in self.all(ViewSpec))
        return {view.name: view for view in (*CORE_VIEWS, *added)}

    def datasets(self) -> dict[str, Registered[SourceSpec]]:
        """Return the data sets in packages by name."""
        return {s.name: s for s in self.all(SourceSpec) if s.spec.is_dataset}

    def curves(self) -> dict[str, Curve]:
        """Return the curve of each shape of schedules; code of plugins is imported when used.

        A shape that two plugins have is found by ``distribution/shape``.
        """
        shapes = self.all(ScheduleSpec)
        names = [shape.name for shape in shapes]
        called = (s.name if names.count(s.name) == 1 else s.qualified for s in shapes)
        return {
            **CURVES,
            **{name: partial(_curve, s) for name, s in zip(called, shapes, strict=True)},
        }

    def find(
        self, kind: Kind, name: str, *, where: str | None = None, near: str = ""
    ) -> Registered[ComponentSpec]:
        """Get the part of a kind that a name means, as :meth:`one` does."""
        return self.one(COMPONENT_SPECS[kind], name, where=where, near=near)

    def has(self, kind: str, name: str) -> bool:
        """Check whether a name, qualified or not, refers to any record of a kind."""
        return bool(self._matching(kind, name))

    def providers(self, capability: Need) -> list[Registered[ComponentSpec]]:
        """Return the installed parts that provide a capability with default options."""
        return [part for part in self.parts() if capability in _provided(part.spec)]

    def providers_elsewhere(self, capability: Need) -> Iterator[KnownPart]:
        """Yield the known parts that would provide a capability and are not here."""
        for part in self.known:
            if capability in part.provides and not self.has(part.kind, part.name):
                yield part

    def how_to_get(self, kind: str, name: str) -> str:
        """Return a hint for getting a known part; empty if its plugin is loaded without it."""
        bare = name.rpartition("/")[2]
        parts = (part for part in self.known if (part.kind, part.name) == (kind, bare))
        return next(filter(None, map(self._bringing, parts)), "")

    def _bringing(self, part: KnownPart) -> str:
        plugins = [info for info in self.plugins if info.distribution == part.distribution]
        if not plugins:
            return f"it is a part of {part.distribution}, not installed: {part.install}"
        for info in plugins:
            if info.status != "active":
                return f"it is a part of {info.label}, {info.status} ({info.reason}): {info.fix}"
        return ""

    def _matching(self, kind: str, name: str) -> list[Registered[Record]]:
        owner, separator, bare = name.rpartition("/")
        return [
            part
            for part in self._parts.get(kind, ())
            if part.name == bare
            and (not separator or owner == part.plugin or canonical(owner) == part.distribution)
        ]

    def _hint(self, kind: str, name: str) -> str:
        """Return a hint that suggests replacements for an unknown name."""
        if hint := self.how_to_get(kind, name):
            return hint
        bare = name.rpartition("/")[2]
        for other in COMPONENT_SPECS:
            if self.has(other, name):
                return f"{bare} is a {NOUNS[other]}: write --{other} {name}"
        hint = did_you_mean(bare, {part.name for part in self._parts.get(kind, ())})
        others = {part.name: part for part in self.known if part.kind == kind}
        near = get_close_matches(bare, others, n=1)
        if near and not hint.startswith("did you mean"):
            return f"did you mean {near[0]}? {self._bringing(others[near[0]])}"
        if said := self.elsewhere(bare):
            return f"{hint}; {said}" if hint.startswith("did you mean") else said
        failed = [info for info in self.plugins if info.status != "active"]
        why = "; ".join(f"{info.key} is {info.status}: {info.reason}" for info in failed[:2])
        more = ", ..." if len(failed) > 2 else ""
        return f"{hint}; not loaded: {why}{more} (see cse list-plugins)" if failed else hint


def _provided(spec: ComponentSpec) -> tuple[Need, ...]:
    try:
        return spec.provided(spec.options_class() if callable(spec.provides) else None)
    except Exception:  # an option must be set, or a plugin is broken that nobody asked for
        return ()


def _curve(shape: Registered[ScheduleSpec], start: float, end: float, done: float) -> float:
    made = load_factory(shape.spec.factory)(start, end, done)
    low, high, slack = min(start, end), max(start, end), 1e-6 * (abs(start) + abs(end))
    number = isinstance(made, SupportsFloat)
    if not (number and low - slack <= float(made) <= high + slack):
        schedule = SimpleNamespace(path=f"schedule.{shape.name}", owner=shape.label)
        shown = f"{float(made):.9g}" if number else truncate_repr(made)
        what = f"promised a number between its bounds, returned {shown}"
        raise PartError(schedule, f"{shape.name}({start:g},{end:g})", what)
    return float(made)
