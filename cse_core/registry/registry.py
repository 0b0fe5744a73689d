"""All parts of all loaded plugins, by kind and name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from types import SimpleNamespace
from typing import Generic, TypeVar, cast

from cse_core.capabilities import Need
from cse_core.errors import CseError, PartError, did_you_mean
from cse_core.hookspecs import COMPONENT_SPECS, CORE_VIEWS
from cse_core.loading import load_factory
from cse_core.records import (
    BackendSpec,
    ComponentSpec,
    EncoderSpec,
    Kind,
    RecipeSpec,
    Record,
    ReporterSpec,
    ScheduleSpec,
    SourceSpec,
    SuiteSpec,
    ViewSpec,
)
from cse_core.registry.plugin_info import NOUNS, AnyKind, KnownPart, PluginInfo, canonical
from cse_core.schedule import CURVES, Curve

RecordT = TypeVar("RecordT", bound=Record, covariant=True)


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


def _accessors(
    record: type[RecordT], default: str
) -> tuple[
    Callable[[Registry], tuple[Registered[RecordT], ...]], Callable[..., Registered[RecordT]]
]:
    """Return the methods for records that are no parts: all by name, and the one of a name.

    The second raises as ``Registry.find`` does; its ``where`` is ``default`` unless it is given.
    """

    def every(self: Registry) -> tuple[Registered[RecordT], ...]:
        return cast(tuple[Registered[RecordT], ...], tuple(self._parts.get(record.kind, ())))

    def one(self: Registry, name: str, *, where: str = default) -> Registered[RecordT]:
        return cast(Registered[RecordT], self._one(record.kind, name, where))

    return every, one


class Registry:
    """Every part of every loaded plugin.

    A name may be qualified by its distribution, ``cse-toolkit/infonce``, or by its plugin's key,
    ``cse-toolkit:basics/infonce``; it must be where two plugins bring a part of one name, and
    neither is the distribution of the recipe that names it.
    ``plugins`` say what became of each plugin, and ``known`` which parts others bring, for hints.
    """

    def __init__(
        self,
        parts: Iterable[Registered[Record]],
        plugins: Iterable[PluginInfo] = (),
        known: Sequence[KnownPart] = (),
    ) -> None:
        self._parts: dict[AnyKind, list[Registered[Record]]] = {}
        for part in parts:
            self._parts.setdefault(part.spec.kind, []).append(part)
        for records in self._parts.values():
            records.sort(key=lambda part: (part.name, part.plugin))
        self.plugins = tuple(plugins)
        self.known = known

    @classmethod
    def from_plugins(cls, infos: Iterable[PluginInfo], known: Sequence[KnownPart] = ()) -> Registry:
        """Register the parts of the plugins that are loaded."""
        plugins = tuple(infos)
        parts = (
            Registered(part, info.distribution, info.version, info.key)
            for info in plugins
            for part in info.parts
        )
        return cls(parts, plugins, known)

    def parts(self, kind: Kind | None = None) -> tuple[Registered[ComponentSpec], ...]:
        """Return the parts of a kind sorted by name, or those of all kinds."""
        kinds = COMPONENT_SPECS if kind is None else (kind,)
        return tuple(
            cast(Registered[ComponentSpec], part)
            for wanted in kinds
            for part in self._parts.get(wanted, ())
        )

    recipes, recipe = _accessors(RecipeSpec, "recipe")
    encoders, encoder = _accessors(EncoderSpec, "model.name")
    backends, backend = _accessors(BackendSpec, "model.name")
    sources, source = _accessors(SourceSpec, "data.path")
    suites, suite = _accessors(SuiteSpec, "--suite")
    reporters, reporter = _accessors(ReporterSpec, "train.report")
    schedules, schedule = _accessors(ScheduleSpec, "schedule")

    @property
    def views(self) -> dict[str, ViewSpec]:
        """Return the views that recipes can name, the core's first.

        Raises:
            CseError: If two plugins declare one view.
        """
        declared = [part.name for part in self._parts.get("view", ())]
        added = (cast(ViewSpec, self._one("view", name, "views").spec) for name in declared)
        return {view.name: view for view in (*CORE_VIEWS, *added)}

    def datasets(self) -> dict[str, Registered[SourceSpec]]:
        """Return the data sets in packages by name."""
        return {s.name: s for s in self.sources() if s.spec.is_dataset}

    def curves(self) -> dict[str, Curve]:
        """Return the curve of each shape of schedules; code of plugins is imported when used.

        A shape that two plugins have is found by ``distribution/shape``.
        """
        known, names = self.schedules(), [part.name for part in self.schedules()]
        shapes = (e.name if names.count(e.name) == 1 else e.qualified for e in known)
        curves = (partial(_curve, part) for part in known)
        return {**CURVES, **dict(zip(shapes, curves, strict=True))}

    def find(
        self, kind: Kind, name: str, *, where: str | None = None, near: str = ""
    ) -> Registered[ComponentSpec]:
        """Return the part of a kind that a name means; ``where`` is for the error.

        ``near`` is the distribution whose part is meant where several have the name.

        Raises:
            CseError: If there is none, or more than one.
        """
        return cast(Registered[ComponentSpec], self._one(kind, name, where or kind, near))

    def has(self, kind: AnyKind, name: str) -> bool:
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

    def how_to_get(self, kind: AnyKind, name: str) -> str:
        """Return a hint for getting a known part; empty if its plugin is loaded without it."""
        bare = name.rpartition("/")[2]
        for part in self.known:
            if (part.kind, part.name) == (kind, bare) and (hint := self._bringing(part)):
                return hint
        return ""

    def _bringing(self, part: KnownPart) -> str:
        plugins = [info for info in self.plugins if info.distribution == part.distribution]
        if not plugins:
            name = part.distribution
            return f"it is a part of {name}, not installed: pip install {name}"
        for info in plugins:
            if not info.loaded:
                return f"it is a part of {info.label}, {info.status} ({info.reason}): {info.fix}"
        return ""

    def _matching(self, kind: AnyKind, name: str) -> list[Registered[Record]]:
        owner, separator, bare = name.rpartition("/")
        return [
            part
            for part in self._parts.get(kind, ())
            if part.name == bare
            and (not separator or owner == part.plugin or canonical(owner) == part.distribution)
        ]

    def _one(self, kind: AnyKind, name: str, where: str, near: str = "") -> Registered[Record]:
        matches = self._matching(kind, name)
        matches = [part for part in matches if part.distribution == near] or matches
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise _ambiguous(kind, matches, where)
        what = f"unknown {NOUNS[kind]}"
        raise CseError(what, where=where, value=name, hint=self._hint(kind, name))

    def _hint(self, kind: AnyKind, name: str) -> str:
        """Return a hint that suggests replacements for an unknown name."""
        if hint := self.how_to_get(kind, name):
            return hint
        bare = name.rpartition("/")[2]
        elsewhere = [other for other in self._parts if other != kind and self.has(other, name)]
        if elsewhere:
            nouns = " and a ".join(NOUNS[other] for other in elsewhere)
            return f"{bare} is a {nouns}: write {_flag(elsewhere[0], name)}"
        hint = did_you_mean(bare, {part.name for part in self._parts.get(kind, ())})
        others = {part.name: part for part in self.known if part.kind == kind}
        near = get_close_matches(bare, others, n=1)
        if near and not hint.startswith("did you mean"):
            return f"did you mean {near[0]}? {self._bringing(others[near[0]])}"
        failed = [info for info in self.plugins if not info.loaded]
        why = "; ".join(f"{info.key} is {info.status}: {info.reason}" for info in failed[:2])
        more = ", ..." if len(failed) > 2 else ""
        return f"{hint}; not loaded: {why}{more} (see cse list-plugins)" if failed else hint


def _provided(spec: ComponentSpec) -> tuple[Need, ...]:
    try:
        return spec.provided(spec.options_class() if callable(spec.provides) else None)
    except Exception:  # an option must be set, or a plugin is broken that nobody asked for
        return ()


def _curve(shape: Registered[ScheduleSpec], start: float, end: float, done: float) -> float:
    value = float(load_factory(shape.spec.factory)(start, end, done))
    low, high, slack = min(start, end), max(start, end), 1e-6 * (abs(start) + abs(end))
    if not low - slack <= value <= high + slack:
        schedule = SimpleNamespace(path=f"schedule.{shape.name}", owner=shape.label)
        what = f"promised a number between its bounds, returned {value:.9g}"
        raise PartError(schedule, f"{shape.name}({start:g},{end:g})", what)
    return value


def _ambiguous(kind: AnyKind, parts: Sequence[Registered[Record]], where: str) -> CseError:
    one_distribution = len({part.distribution for part in parts}) < len(parts)
    names = [f"{part.plugin}/{part.name}" if one_distribution else part.qualified for part in parts]
    owners = [part.plugin if one_distribution else part.label for part in parts]
    what = f"more than one {NOUNS[kind]} has this name: {' and '.join(owners)}"
    return CseError(what, where=where, value=parts[0].name, hint=f"write {' or '.join(names)}")


def _flag(kind: AnyKind, name: str) -> str:
    flags = {"encoder": "model", "source": "data", "reporter": "report"}
    return f"--{flags.get(kind, kind)} {name}"
