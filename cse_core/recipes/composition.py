"""A typed recipe: what the composer checks and completes, and the engine runs. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, cast

from cse_core.capabilities import INSTANCE, Role, flatten
from cse_core.errors import CseError
from cse_core.options import LossOptions, Options, StoreOptions
from cse_core.recipes.settings import (
    COLUMNS,
    DataOptions,
    InferenceOptions,
    ModelOptions,
    TrainOptions,
    ViewOptions,
)
from cse_core.records import AugmenterSpec, ComponentSpec, Kind, MinerSpec, PoolSpec, RunInfo
from cse_core.registry.plugin_info import TOOLKIT

if TYPE_CHECKING:
    from cse_core.registry.registry import Registered

Problem = CseError | str
"""What a check finds: an error refuses the run, a text is a warning for the plan."""
BASE_VIEWS = ("anchor", "positive", "identical")
"""Views that the core makes of the text alone."""
BASE_LEVELS = ("sentence", "input")
"""Levels that every run has."""
VIEW_COLUMNS = tuple(name for name in COLUMNS if name not in ("text", "document", "title"))
"""Columns that make a view of their own name."""


@dataclass(frozen=True, kw_only=True)
class PlannedPart:
    """A named instance of an installed part.

    Attributes:
        use: Name of its record; ``name`` is that of the instance, unique in its kind.
    """

    kind: Kind
    use: str
    name: str
    spec: ComponentSpec
    options: Options
    distribution: str
    version: str

    @property
    def path(self) -> str:
        """Return ``kind.name``, its place in recipes, flags and messages."""
        return f"{self.kind}.{self.name}"

    @property
    def owner(self) -> str:
        """Return the distribution that brings it, with its version."""
        return f"{self.distribution} {self.version}".strip()

    @property
    def qualified(self) -> str:
        """Return the name that means its record whatever else is installed."""
        toolkit = self.distribution == TOOLKIT  # no plugin may take a name of the toolkit's
        return self.use if toolkit else f"{self.distribution}/{self.use}"

    @property
    def requires(self) -> tuple[tuple[str, ...], ...]:
        """Return the capabilities that it requires, each as the alternatives that meet it."""
        needs = self.spec.required(self.options)
        return tuple((need,) if isinstance(need, str) else need for need in needs)

    @cached_property
    def provides(self) -> tuple[str, ...]:
        """Return the capabilities that it provides."""
        capabilities = flatten(self.spec.provided(self.options))
        return tuple(capability.replace(INSTANCE, self.name) for capability in capabilities)

    @staticmethod
    def of(
        found: Registered[ComponentSpec], options: Options | None = None, name: str | None = None
    ) -> PlannedPart:
        """Return an instance of an installed part, by default of its name, with its defaults."""
        return PlannedPart(
            kind=found.spec.kind,
            use=found.spec.name,
            name=name or found.spec.name,
            spec=found.spec,
            options=found.spec.options() if options is None else options,
            distribution=found.distribution,
            version=found.version,
        )


@dataclass(frozen=True, kw_only=True)
class PlannedView:
    """A view of the batch: where its texts come from, who changes and who encodes it.

    Attributes:
        column: Column of its texts; None where a part makes the view.
        made_by: Path of the part that adds it; None for the core's own.
    """

    name: str
    role: Role
    branch: str
    column: str | None
    made_by: str | None = None
    augmenters: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PlannedPass:
    """What a branch encodes in a step, at one time.

    Attributes:
        views: What it encodes. Views of the branch are one encoder call; one of another branch is
            a call of its own.
        gradient: Whether it is trained through.
        why: Which parts need it.
        off: Paths of augmenters that are off in it: it is there for the gradient of the inputs
            that they ask for.
    """

    branch: str
    views: tuple[str, ...]
    gradient: bool
    why: str
    off: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Composition:
    """Parts and settings of a run: typed first, then completed and checked.

    Attributes:
        recipe: Name of the recipe, None without one.
        view_options: Settings of the views that the recipe or the command line names.
        views: Views of the run; empty until they are planned, as passes are.
        inference_pool: Row pooler of the saved model where it is another than that of training.
        notes: What the composer added or decided, for the plan.
        warnings: What a user should look at.
        expressions: Values that were written as expressions of parameters, by option path.
    """

    recipe: str | None
    model: ModelOptions
    data: DataOptions
    train: TrainOptions
    inference: InferenceOptions
    params: dict[str, float]
    parts: tuple[PlannedPart, ...]
    view_options: Mapping[str, ViewOptions]
    facts: RunInfo
    views: tuple[PlannedView, ...] = ()
    passes: tuple[PlannedPass, ...] = ()
    inference_pool: PlannedPart | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    expressions: Mapping[str, str] = field(default_factory=dict)

    def of(self, kind: Kind) -> tuple[PlannedPart, ...]:
        """Return the parts of a kind, in recipe order."""
        return tuple(part for part in self.parts if part.kind == kind)

    def pools(self, record: type[PoolSpec]) -> list[PlannedPart]:
        """Return the parts with a record of a class of poolers, in recipe order."""
        return [part for part in self.parts if isinstance(part.spec, record)]

    def losses(self) -> Iterator[tuple[PlannedPart, LossOptions]]:
        """Yield the losses with their options."""
        for part in self.of("loss"):
            yield part, cast(LossOptions, part.options)

    def stores(self) -> Iterator[tuple[PlannedPart, StoreOptions]]:
        """Yield the negative stores with their options."""
        for part in self.of("negatives"):
            yield part, cast(StoreOptions, part.options)

    @property
    def round_miners(self) -> list[PlannedPart]:
        """Return the miners that mine between rounds, whose rows nobody knows beforehand."""
        return [part for part in self.of("positives") if cast(MinerSpec, part.spec).rounds]

    @cached_property
    def groups(self) -> dict[str, PlannedPart]:
        """Return the miner of each group of positives."""
        return self._providers("positives", self.of("positives"))

    @cached_property
    def view_makers(self) -> dict[str, PlannedPart]:
        """Return the part that makes each view that a part makes."""
        return self._providers("view", self.parts)

    @cached_property
    def needed_columns(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the columns that the data must have beside the text, and those that views encode.

        A column that a view encodes has no blank cell.
        """
        brought = ("text", "positive") if self.round_miners else ("text",)
        columns = (view.column for view in self.views if view.column is not None)
        encoded = tuple(column for column in columns if column not in brought)
        needs = (needs[0] for part in self.parts for needs in part.requires if len(needs) == 1)
        read = (need.partition(":")[2] for need in needs if need.startswith("column:"))
        return tuple(dict.fromkeys([*encoded, *read])), encoded

    def view(self, name: str) -> PlannedView | None:
        """Return a view by its name, None where the run has none of that name."""
        return next((view for view in self.views if view.name == name), None)

    def can_have_view(self, name: str) -> bool:
        """Tell whether there can be a view: the core's, a part's, a column's or a declared one."""
        if name in BASE_VIEWS or name in self.view_makers:
            return True
        if name in self.view_options and self.view_options[name].column is not None:
            return True
        columns = self.facts.columns
        return name in VIEW_COLUMNS and (columns is None or name in columns)

    def possible_views(self) -> list[str]:
        """Return the views that there can be, for hints."""
        declared = [*self.view_options, *VIEW_COLUMNS]
        possible = [name for name in declared if self.can_have_view(name)]
        return list(dict.fromkeys([*BASE_VIEWS, *self.view_makers, *possible]))

    def serves(self, store: PlannedPart, loss: PlannedPart) -> bool:
        """Tell whether a loss sees the negatives of a store."""
        stored, options = cast(StoreOptions, store.options), cast(LossOptions, loss.options)
        if stored.level != options.level:
            return False
        if isinstance(options.negatives, tuple):
            return store.name in options.negatives
        return options.negatives in ("all", "stored")

    def _providers(self, prefix: str, parts: tuple[PlannedPart, ...]) -> dict[str, PlannedPart]:
        first: dict[str, PlannedPart] = {}
        for part in parts:
            for capability in part.provides:
                if capability.startswith(f"{prefix}:"):
                    first.setdefault(capability.partition(":")[2], part)
        return first


def augmented_views(part: PlannedPart) -> tuple[str, ...]:
    """Return the views that an augmenter changes."""
    chosen = getattr(part.options, "views", None)
    return tuple(chosen) if chosen is not None else cast(AugmenterSpec, part.spec).views
