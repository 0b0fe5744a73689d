"""The least that makes a run of some parts: the other parts, columns and settings they need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from cse import Composition
from cse_cli.api import Registered, Registry, format_value
from cse_core.capabilities import Need
from cse_core.hookspecs import COMPONENT_SPECS
from cse_core.options import MinerOptions, Options, StoreOptions
from cse_core.protocols import Corpus
from cse_core.records import (
    AugmenterSpec,
    ComponentSpec,
    HeadSpec,
    Kind,
    MinerSpec,
    MultiVectorSpec,
    PerText,
    RowPoolerSpec,
    SliceSpec,
)
from cse_core.types import INPUT, SENTENCE
from cse_testkit.promises import installed_registry, plugins_of
from cse_testkit.runs import Rig, compose
from cse_testkit.tiny import Columns, declared_columns, shared_encoder, tiny_corpus, typed

Found = Registered[ComponentSpec]
KINDS = tuple(kind for kind in COMPONENT_SPECS if kind != "metric")
"""Kinds whose parts stand in one run."""
_MET = ("branch", "precision", "mask-token", "end-token")
"""Kinds of needs that every run of the kit meets."""
_LEVELS = (Need("level", SENTENCE), Need("level", INPUT))


def complete(
    registry: Registry,
    parts: Sequence[tuple[Kind, str]],
    options: Mapping[tuple[Kind, str], Mapping[str, Any]] | None = None,
) -> Needed:
    """Return flags and data that let some parts run over the default recipe.

    What they require is met by a column of the tiny corpus where one can, else by the first
    installed part that provides it. Each group of positives gets a loss, each slicing part a loss
    at its level, each branch the positive view.

    Args:
        registry: What is installed.
        parts: Kind and name of each.
        options: Options of parts that differ from their defaults.
    """
    needed = Needed(registry, dict(options or {}))
    for kind, name in parts:
        needed.add(registry.find(kind, name))
    needed.set_flags()
    return needed


@dataclass
class Needed:
    """What a run of some parts takes.

    Attributes:
        registry: What is installed.
        options: Options of parts that differ from their defaults.
        parts: They, and those that they require.
        provided: What these provide.
        columns: Columns of the data, with what each has.
        cased: Whether the vocabulary must keep capital letters.
        kinds: Kind flags over the default recipe.
        sets: Settings.
    """

    registry: Registry
    options: dict[tuple[Kind, str], Mapping[str, Any]]
    parts: list[Found] = field(default_factory=list)
    provided: set[Need] = field(default_factory=set)
    columns: dict[str, str | Sequence[str]] = field(default_factory=lambda: {"text": "text"})
    cased: bool = False
    kinds: dict[Kind, list[str]] = field(default_factory=dict)
    sets: list[str] = field(default_factory=list)

    def corpus(self, rows: int = 24, columns: Columns = ()) -> Corpus:
        """Return a corpus with its columns, and others."""
        return tiny_corpus(rows, {**self.columns, **typed(columns)})

    def compose(self, corpus: Corpus, *sets: str) -> Composition:
        """Return the run for a corpus, with further settings.

        Raises:
            CseError: If the composer refuses it.
        """
        return compose(
            kinds=self.kinds,
            sets=[*self.sets, *sets],
            registry=self.registry,
            encoder=shared_encoder(cased=self.cased),
            corpus=corpus,
        )

    def add(self, found: Found) -> None:
        """Add a part and what it requires."""
        if any(part.plugin == found.plugin and part.spec is found.spec for part in self.parts):
            return
        self.parts.append(found)
        self.provided |= {*self._provided(found)}
        self.columns |= declared_columns(found.distribution)
        options = self._options_of(found)
        if options is None:
            return
        needs = [*found.spec.required(options)]
        for name, kind in found.spec.declared("reads", options).items():
            self.columns.setdefault(name, kind.kind if isinstance(kind, PerText) else kind)
        if isinstance(found.spec, AugmenterSpec):
            views = getattr(options, "views", None) or found.spec.views
            needs += [(Need("view", view),) for view in views]
        if isinstance(options, StoreOptions):
            needs.append((Need("view", options.view),))
        if isinstance(options, StoreOptions | MinerOptions):
            needs.append((Need("level", options.level),))
        for need in needs:
            self._meet(need)

    def _options_of(self, part: Found) -> Options | None:
        given = self.options.get((part.spec.kind, part.name))
        return part.spec.options_class(**given) if given else part.spec.default_options()

    def _provided(self, part: Found) -> tuple[Need, ...]:
        options = self._options_of(part)
        return () if options is None else part.spec.provided(options)

    def _meet(self, alternatives: tuple[Need, ...]) -> None:
        """Meet a requirement, by the first of its alternatives that can be met."""
        if self.provided.isdisjoint(alternatives):
            any(self._meet_one(need) for need in alternatives)

    def _meet_one(self, need: Need) -> bool:
        kind, name = need
        view = self.registry.views.get(name) if kind in ("view", "positives") else None
        if kind == "vocab":
            self.cased = True
        elif view is not None and (view.optional or view.column == "text"):
            pass
        elif kind in ("pairs", "column") or view is not None:
            column = view.column if view is not None else name or "positive"
            self.columns.setdefault(column, "text")
        elif kind not in _MET and need not in _LEVELS:
            providers = self.registry.providers(need)
            if not providers:
                return False
            self.add(providers[0])
        return True

    def set_flags(self) -> None:
        """Set the flags: each kind's parts, a loss for each group and level, the options."""
        for kind in (name for name in COMPONENT_SPECS if name not in ("pool", "loss")):
            named = [
                f"+{self._name_of(part)}" for part in self._parts_of(kind) if part.name != "online"
            ]
            if named:
                self.kinds[kind] = named
        branches = [part.name for part in self._parts_of("branch") if part.name != "online"]
        self.sets += [f"views.positive.branch={name}" for name in branches[:1]]
        rows, slices, several, heads = (
            [self._name_of(part) for part in self.parts if isinstance(part.spec, record)]
            for record in (RowPoolerSpec, SliceSpec, MultiVectorSpec, HeadSpec)
        )
        self.kinds["pool"] = _list([*(rows or ["cls"]), *slices, *several, *(heads or ["mlp"])])
        if several and not heads:  # whose vectors may have another dimension than those of rows
            self.sets.append("pool.mlp.level=row")
        losses = [self._name_of(part) for part in self._parts_of("loss")] or ["infonce"]
        for part in self.parts:
            for form, name in self._provided(part):
                if form == "positives" and part.spec.kind == "positives":
                    level = cast(MinerOptions, self._options_of(part)).level
                    losses.append(f"infonce:on-{name}")
                    self.sets += [f"loss.on-{name}.target={name}", f"loss.on-{name}.level={level}"]
                if form == "level":
                    losses.append(f"infonce:at-{name}")
                    self.sets.append(f"loss.at-{name}.level={name}")
        self.kinds["loss"] = _list(losses)
        for part in self.parts:
            given = self.options.get((part.spec.kind, part.name), {})
            path = path_of(part)
            self.sets += [f"{path}.{name}={format_value(value)}" for name, value in given.items()]

    def _parts_of(self, kind: Kind) -> list[Found]:
        return [part for part in self.parts if part.spec.kind == kind]

    def _name_of(self, part: Found) -> str:
        same = [other for other in self.registry.parts(part.spec.kind) if other.name == part.name]
        return part.qualified if len(same) > 1 else part.name


def _list(names: Sequence[str]) -> list[str]:
    """Return names as flags that replace a kind's list: the first alone, the others added."""
    first, *others = dict.fromkeys(names)
    return [first, *(f"+{name}" for name in others)]


def path_of(part: Found) -> str:
    """Return ``kind.name`` of a part."""
    return f"{part.spec.kind}.{part.name}"


def compose_together(
    parts: Sequence[Found],
    registry: Registry | None = None,
    options: Mapping[tuple[Kind, str], Mapping[str, Any]] | None = None,
) -> Composition:
    """Compose parts over the default recipe, with what they require; ``options`` as in complete.

    Raises:
        CseError: If the composer refuses them.
    """
    named = [(part.spec.kind, part.qualified) for part in parts]
    needed = complete(registry or installed_registry(), named, options)
    return needed.compose(needed.corpus(12))


def train_together(
    parts: Sequence[Found],
    registry: Registry | None = None,
    options: Mapping[tuple[Kind, str], Mapping[str, Any]] | None = None,
) -> float:
    """Train a step with parts (two where one mines rounds) and return the last loss.

    Raises:
        CseError: If the composer refuses them.
        ArithmeticError: If the loss or a gradient is not finite.
    """
    rig = Rig(compose_together(parts, registry, options), plugins_of(registry))
    rounds = any(isinstance(part.spec, MinerSpec) and part.spec.rounds for part in parts)
    rig.step(2 if rounds else 1)
    if bad := rig.not_finite():
        raise ArithmeticError(f"{' with '.join(map(path_of, parts))}: {bad}")
    return rig.losses[-1]
