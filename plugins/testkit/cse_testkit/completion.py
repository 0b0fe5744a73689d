"""The least that makes a run of some parts: the other parts, columns and settings they need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from cse_core.capabilities import Requirement, flatten
from cse_core.options import MinerOptions, Options, StoreOptions
from cse_core.recipes.composition import BASE_LEVELS, BASE_VIEWS, VIEW_COLUMNS
from cse_core.records import AugmenterSpec, ComponentSpec, HeadSpec, Kind, RowPoolerSpec, SliceSpec
from cse_core.registry.registry import Registered, Registry

Found = Registered[ComponentSpec]
_PLUS: tuple[Kind, ...] = ("aug", "positives", "negatives", "branch", "metric", "adapter")


@dataclass(frozen=True)
class Needed:
    """What a run of some parts takes.

    Attributes:
        kinds: Kind flags over the default recipe.
        sets: Settings.
        columns: Columns of the data.
        cased: Whether the vocabulary must keep capital letters.
    """

    kinds: dict[Kind, list[str]]
    sets: list[str]
    columns: tuple[str, ...]
    cased: bool


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
    run = _Run(registry, dict(options or {}))
    for kind, name in parts:
        run.add(registry.find(kind, name))
    return run.needed()


@dataclass
class _Run:
    registry: Registry
    options: dict[tuple[Kind, str], Mapping[str, Any]]
    parts: list[Found] = field(default_factory=list)
    columns: list[str] = field(default_factory=lambda: ["text"])
    cased: bool = False

    def add(self, found: Found) -> None:
        if any(part.plugin == found.plugin and part.spec is found.spec for part in self.parts):
            return
        self.parts.append(found)
        options = self.options_of(found)
        if options is None:
            return
        for need in found.spec.required(options):
            self.meet(need)
        if isinstance(found.spec, AugmenterSpec):
            for view in getattr(options, "views", None) or found.spec.views:
                self.meet(f"view:{view}")
        if isinstance(options, StoreOptions):
            self.meet(f"view:{options.view}")
        if isinstance(options, StoreOptions | MinerOptions):
            self.meet(f"level:{options.level}")

    def options_of(self, found: Found) -> Options | None:
        given = self.options.get((found.spec.kind, found.name))
        return found.spec.options(**given) if given else found.spec.default_options()

    def provided(self) -> set[str]:
        return {
            token
            for part in self.parts
            if (options := self.options_of(part)) is not None
            for token in flatten(part.spec.provided(options))
        }

    def meet(self, need: Requirement) -> None:
        """Meet a requirement, by the first of its alternatives that can be met."""
        alternatives = (need,) if isinstance(need, str) else need
        if any(token in self.provided() for token in alternatives):
            return
        for token in alternatives:
            if self.meet_one(token):
                return

    def meet_one(self, token: str) -> bool:
        prefix, _, name = token.partition(":")
        if token == "vocab:cased":
            self.cased = True
        elif token == "pairs":
            self.column("positive")
        elif prefix == "column":
            self.column(name)
        elif prefix in ("view", "positives") and name in VIEW_COLUMNS and name != "positive":
            self.column(name)
        elif prefix in ("view", "positives") and name not in BASE_VIEWS:
            return self.provider(token)
        elif prefix == "level" and name not in BASE_LEVELS:
            return self.provider(token)
        return True

    def column(self, name: str) -> None:
        if name not in self.columns:
            self.columns.append(name)

    def provider(self, token: str) -> bool:
        installed = self.registry.providers(token)
        if installed:
            self.add(installed[0])
        return bool(installed)

    def needed(self) -> Needed:
        kinds: dict[Kind, list[str]] = {}
        sets: list[str] = []
        for kind in _PLUS:
            chosen = [each for each in self.parts if each.spec.kind == kind]
            named = [f"+{self.name(each)}" for each in chosen if each.name != "online"]
            if named:
                kinds[kind] = named
        for part in self.parts:
            if part.spec.kind == "branch" and part.name != "online":
                sets.append(f"views.positive.branch={part.name}")
                break
        kinds["pool"] = self.poolers()
        losses = [self.name(each) for each in self.parts if each.spec.kind == "loss"]
        losses = losses or ["infonce"]
        for part in self.parts:
            options = self.options_of(part)
            if options is None:
                continue
            for token in flatten(part.spec.provided(options)):
                prefix, _, name = token.partition(":")
                if prefix == "positives" and part.spec.kind == "positives":
                    losses.append(f"infonce:on-{name}")
                    sets.append(f"loss.on-{name}.target={name}")
                    sets.append(f"loss.on-{name}.level={cast(MinerOptions, options).level}")
                if prefix == "level":
                    losses.append(f"infonce:at-{name}")
                    sets.append(f"loss.at-{name}.level={name}")
        kinds["loss"] = [losses[0], *(f"+{name}" for name in dict.fromkeys(losses[1:]))]
        for part in self.parts:
            given = self.options.get((part.spec.kind, part.name), {})
            sets += [f"{part.spec.kind}.{part.name}.{k}={_text(v)}" for k, v in given.items()]
        return Needed(kinds, sets, tuple(self.columns), self.cased)

    def poolers(self) -> list[str]:
        rows, slices, heads = (
            [self.name(part) for part in self.parts if isinstance(part.spec, record)]
            for record in (RowPoolerSpec, SliceSpec, HeadSpec)
        )
        names = [*(rows or ["cls"]), *slices, *(heads or ["mlp"])]
        return [names[0], *(f"+{name}" for name in names[1:])]

    def name(self, found: Found) -> str:
        same = [each for each in self.registry.parts(found.spec.kind) if each.name == found.name]
        return found.qualified if len(same) > 1 else found.name


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_text(each) for each in value) + "]"
    return "none" if value is None else str(value)
