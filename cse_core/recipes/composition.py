"""A checked recipe: what the composer returns and the engine runs. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

from cse_core.options import Options
from cse_core.recipes.settings import DataOptions, InferenceOptions, ModelOptions, TrainOptions
from cse_core.records import ComponentSpec, Facts, Kind, MinerSpec, PoolSpec
from cse_core.vocabulary import Role

if TYPE_CHECKING:
    from cse_core.registry.registry import Registered

AnyOptions = TypeVar("AnyOptions", bound=Options)


@dataclass(frozen=True, kw_only=True)
class PlannedPart:
    """A named instance of an installed part.

    Attributes:
        use: Name of its record.
        name: Name of the instance, unique in its kind.
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
    """Parts and settings of a run, merged, typed and checked.

    Attributes:
        recipe: Name of the recipe, None without one.
        inference_pool: Row pooler of the saved model where it is another than that of training.
        feeds: Lines ``who -> whom`` for the plan.
        notes: What the composer added or decided, for the plan.
        warnings: What a user should look at.
        raw: The resolved recipe as plain data: written to run.toml, it repeats the run.
    """

    recipe: str | None
    model: ModelOptions
    data: DataOptions
    train: TrainOptions
    inference: InferenceOptions
    params: dict[str, float]
    parts: tuple[PlannedPart, ...]
    views: tuple[PlannedView, ...]
    passes: tuple[PlannedPass, ...]
    facts: Facts
    inference_pool: PlannedPart | None = None
    feeds: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    raw: dict[str, Any] = field(default_factory=dict)

    def of(self, kind: Kind) -> tuple[PlannedPart, ...]:
        """Return the parts of a kind, in recipe order."""
        return tuple(part for part in self.parts if part.kind == kind)

    def pools(self, record: type[PoolSpec]) -> list[PlannedPart]:
        """Return the parts with a record of a class of poolers, in recipe order."""
        return [part for part in self.parts if isinstance(part.spec, record)]

    @property
    def in_rounds(self) -> bool:
        """Return whether a miner brings the rows of rounds, which nobody knows beforehand."""
        return any(cast(MinerSpec, part.spec).rounds for part in self.of("positives"))

    def view(self, name: str) -> PlannedView | None:
        """Return a view by its name, None where the run has none of that name."""
        return next((view for view in self.views if view.name == name), None)
