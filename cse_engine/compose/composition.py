"""A typed recipe: what the composer checks and completes, and the engine runs. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, cast

from cse_core.capabilities import Need, Role
from cse_core.errors import CseError
from cse_core.model_card import Declared
from cse_core.options import HeadOptions, LossOptions, Options, StoreOptions, TokenLossOptions
from cse_core.records import (
    BranchSpec,
    ColumnType,
    ComponentSpec,
    HeadSpec,
    Kind,
    MinerSpec,
    MultiVectorSpec,
    PerText,
    PoolSpec,
    Reads,
    RowPoolerSpec,
    SliceSpec,
    TokenLossSpec,
    ViewSpec,
)
from cse_core.registry.plugin_info import TOOLKIT
from cse_core.registry.registry import Registered
from cse_core.run_info import RunInfo
from cse_core.schedule import Schedule
from cse_core.texts import FILLED, DataOptions, Lists, NeededColumns
from cse_engine.compose.settings import InferenceOptions, ModelOptions, TrainOptions, ViewOptions

Problem = CseError | str
"""What a check finds: an error refuses the run, a text is a warning for the plan."""


@dataclass(frozen=True)
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
    def requires(self) -> tuple[tuple[Need, ...], ...]:
        """The capabilities that it requires, each as the alternatives that meet it."""
        columns = ((Need("column", name),) for name in (*self.reads, *self.only))
        return (*self.spec.required(self.options), *columns)

    def needs(self, kind: str) -> list[str]:
        """List the names of a kind that it requires, those of alternatives too."""
        return [need.name for need in chain.from_iterable(self.requires) if need.kind == kind]

    @property
    def reads(self) -> Mapping[str, ColumnType]:
        """Return the columns of the data that its record says it reads, with their types."""
        read: Reads = self.spec.declared("reads", self.options)
        return {name: x.kind if isinstance(x, PerText) else x for name, x in read.items()}

    @property
    def per_text(self) -> Mapping[str, str]:
        """Return those columns that have a number for each text of a view, with the view."""
        read: Reads = self.spec.declared("reads", self.options)
        return {name: x.view for name, x in read.items() if isinstance(x, PerText)}

    @property
    def only(self) -> Mapping[str, str]:
        """Return the rows that a loss counts for, by their text in a column; empty for all."""
        return self.options.only if isinstance(self.options, LossOptions) else {}

    @property
    def encodes(self) -> tuple[tuple[str, str | None], ...]:
        """Return the views that it asks the step to encode, each with a branch.

        Without one in its record this is the branch of its options, or None: the view's own.
        """
        branch = getattr(self.options, "branch", None)
        asked = (*self.token_views, *self.spec.declared("encodes", self.options))
        return tuple((view, branch) if isinstance(view, str) else view for view in asked)

    @property
    def token_views(self) -> tuple[str, ...]:
        """Return the views whose token states it reads."""
        reads = isinstance(self.spec, TokenLossSpec)
        return self.spec.declared("tokens", self.options) if reads else ()

    @property
    def whole_batch(self) -> bool:
        """Check whether it compares token states of all rows of a batch."""
        reads = isinstance(self.spec, TokenLossSpec)
        return bool(reads and self.spec.declared("whole_batch", self.options))

    @cached_property
    def provides(self) -> tuple[Need, ...]:
        """The capabilities that it provides."""
        return self.spec.provided(self.options, self.name)

    @classmethod
    def of(
        cls, record: Registered[ComponentSpec], options: Options | None = None, name: str = ""
    ) -> PlannedPart:
        """Return an instance of an installed part, by default of its name, with its defaults."""
        spec, origin = record.spec, (record.distribution, record.version)
        options = options or spec.options_class()
        return cls(spec.kind, spec.name, name or spec.name, spec, options, *origin)


@dataclass(frozen=True)
class PlannedView:
    """A view of the batch: where its texts come from, who changes and who encodes it.

    Attributes:
        column: Column of its texts; None where a part makes the view.
        made_by: Path of the part that adds it; None for the core's own.
        prompt: Text before its texts; None: that of all.
        lists: What becomes of lists of texts in its column.
        weights: Column with a weight for each of its texts; None: they count equally.
    """

    name: str
    role: Role
    branch: str
    column: str | None
    made_by: str | None = None
    augmenters: tuple[str, ...] = ()
    prompt: str | None = None
    lists: Lists = "rows"
    weights: str | None = None


@dataclass(frozen=True)
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


class InferenceParts(NamedTuple):
    """The row pooler, poolers of several vectors, heads and slicer of a model."""

    row: PlannedPart
    several: list[PlannedPart]
    heads: list[PlannedPart]
    slicer: PlannedPart | None


@dataclass(frozen=True, kw_only=True)
class Run:
    """A typed recipe: options and parts of a run, before anything is planned.

    Attributes:
        recipe: Name of the recipe, None without one.
        view_options: Settings of the views that the recipe or the command line names.
        facts: What is known of the model and the data.
        expressions: Values that were written as expressions of parameters, by option path.
        origins: Where the core's settings come from, by option path: a recipe, the model, the
            command line; without one, the default.
        declared: The views that a recipe can name.
        read: The data, where it was read: a ``cse_defaults.texts.Data``.
        says: What the model says of how it encodes.
        named: The other models that options of parts name, each composed as it says itself.
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
    expressions: Mapping[str, str]
    origins: Mapping[str, str] = field(repr=False, compare=False)
    declared: Mapping[str, ViewSpec]
    read: Any = field(repr=False, compare=False)
    says: Declared
    named: Mapping[str, Composition]

    def of(self, kind: Kind) -> tuple[PlannedPart, ...]:
        """Return the parts of a kind, in recipe order."""
        return tuple(part for part in self.parts if part.kind == kind)

    def pools(self, record: type[PoolSpec]) -> list[PlannedPart]:
        """Return the parts with a record of a class of poolers, in recipe order."""
        return [part for part in self.of("pool") if isinstance(part.spec, record)]

    def losses(self) -> Iterator[tuple[PlannedPart, LossOptions]]:
        """Yield the losses on vectors with their options."""
        for part in self.of("loss"):
            if not isinstance(part.spec, TokenLossSpec):
                yield part, cast(LossOptions, part.options)

    def weights(self) -> Iterator[tuple[PlannedPart, Schedule]]:
        """Yield every loss with its weight."""
        for part in self.of("loss"):
            yield part, cast(LossOptions | TokenLossOptions, part.options).weight

    def stores(self) -> Iterator[tuple[PlannedPart, StoreOptions]]:
        """Yield the negative stores with their options."""
        for part in self.of("negatives"):
            yield part, cast(StoreOptions, part.options)

    @cached_property
    def side_branches(self) -> tuple[str, ...]:
        """Return the branches by which stores weigh what other stores keep."""
        asked = (store.spec.declared("side", options) for store, options in self.stores())
        return tuple(dict.fromkeys(chain.from_iterable(asked)))

    @cached_property
    def trained_branches(self) -> frozenset[str]:
        """Return the branches that train: the online one, and copies that learn by themselves."""
        branches = [b.name for b in self.of("branch") if cast(BranchSpec, b.spec).trainable]
        return frozenset({"online", *branches})

    @property
    def round_miners(self) -> list[PlannedPart]:
        """Return the miners that mine between rounds, whose rows nobody knows beforehand."""
        return [part for part in self.of("positives") if cast(MinerSpec, part.spec).rounds]

    @cached_property
    def groups(self) -> dict[str, PlannedPart]:
        """Return the miner of each group of positives."""
        return self.made("positives")

    @cached_property
    def view_makers(self) -> dict[str, PlannedPart]:
        """Return the part that makes each view that a part makes."""
        return self.made("view")

    @property
    def mined_columns(self) -> tuple[str, ...]:
        """Return the columns that the rounds of miners bring; with ``text`` they bring all rows."""
        specs = [cast(MinerSpec, part.spec) for part in self.round_miners]
        return tuple(dict.fromkeys(n for spec in specs for n in ("positive", *spec.columns)))

    def can_have_view(self, name: str) -> bool:
        """Check whether a view can exist: a part's, one with a column, or a declared one."""
        options, view = self.view_options.get(name), self.declared.get(name)
        if name in self.view_makers or (options is not None and options.column is not None):
            return True
        return view is not None and (view.optional or self.may_have_column(view.column))

    def may_have_column(self, name: str) -> bool:
        """Check whether a column exists, or can: in the data or in every round."""
        columns = self.facts.columns
        return name == "text" or columns is None or name in columns or name in self.mined_columns

    def serves(self, store: PlannedPart, loss: PlannedPart) -> bool:
        """Check whether a loss sees the negatives of a store."""
        stored, options = cast(StoreOptions, store.options), loss.options
        if not isinstance(options, LossOptions) or stored.level != options.level:
            return False
        taken = options.negatives
        return store.name in taken if isinstance(taken, tuple) else taken in ("all", "stored")

    def made(self, kind: str) -> dict[str, PlannedPart]:
        """Map the names of what is provided of a kind of capability to the part that does."""
        provided = ((need, part) for part in self.parts for need in part.provides)
        return {need.name: part for need, part in provided if need.kind == kind}


@dataclass(frozen=True, kw_only=True)
class Composition(Run):
    """The plan of a run: what the composer checked, and the engine executes.

    Attributes:
        views: Views of the run.
        passes: Encoder calls of a step.
        inference_pool: Row pooler of the saved model where it is another than that of training.
        notes: What the composer added or decided.
        warnings: What a user should look at.
    """

    views: tuple[PlannedView, ...] = ()
    passes: tuple[PlannedPass, ...] = ()
    inference_pool: PlannedPart | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def inference_parts(self) -> InferenceParts:
        """The poolers and heads that encode after training."""
        slices = self.pools(SliceSpec)
        row = self.inference_pool or self.pools(RowPoolerSpec)[0]
        heads = self.pools(HeadSpec)
        kept = [head for head in heads if cast(HeadOptions, head.options).keep == "always"]
        slicer = slices[0] if slices and self.inference.slice else None
        return InferenceParts(row, self.pools(MultiVectorSpec), kept, slicer)

    @cached_property
    def needed_columns(self) -> NeededColumns:
        """The columns that the data must have beside the text."""
        brought = ("text", *self.mined_columns)
        columns = (view.column for view in self.views if view.column is not None)
        encoded = tuple(column for column in columns if column not in brought)
        needs = (needs[0] for part in self.parts for needs in part.requires if len(needs) == 1)
        weights = [view.weights for view in self.views if view.weights]
        read = [*(need.name for need in needs if need.kind == "column"), *weights]
        types = {name: kind for part in self.parts for name, kind in part.reads.items()}
        types |= dict.fromkeys(weights, "float")
        whole = {*weights, *(n for part in self.parts if not part.only for n in part.reads)}
        required = tuple(name for name in dict.fromkeys([*encoded, *read]) if name not in brought)
        lists: dict[str, Lists] = {}
        for view in self.views:
            if view.column in encoded and view.lists != "rows" and lists.get(view.column) != "draw":
                lists[view.column] = view.lists  # a text to draw is more than a list may have
        by_view = {name: view.column for name, view in self.scored_views.items()}
        beside = {name: column for name, column in by_view.items() if column in encoded}
        partial = frozenset(types.keys() - whole)
        return NeededColumns(required, encoded, types, partial, lists, beside)

    @cached_property
    def scored_views(self) -> dict[str, PlannedView]:
        """Map columns with a number for each text of a view to the view."""
        named = {
            name: self.view(view) for part in self.parts for name, view in part.per_text.items()
        }
        named |= {view.weights: view for view in self.views if view.weights}
        return {name: view for name, view in named.items() if view is not None}

    def view(self, name: str) -> PlannedView | None:
        """Return a view by its name, None where the run has none of that name."""
        return next((view for view in self.views if view.name == name), None)

    def read_columns(self, *roles: Role) -> set[str | None]:
        """Return the columns whose texts views are of, of some roles or of all.

        Those of views that parts make are among them.
        """
        views = [view for view in self.views if not roles or view.role in roles]
        made = (self.view_makers[view.name].needs("column") for view in views if view.made_by)
        return {*chain.from_iterable(made), *(view.column for view in views)}

    @property
    def columns_read(self) -> set[str | None]:
        """Return the columns that views and parts read, with those that any part may."""
        needs = (part.needs("column") for part in self.parts)
        return {"text", *FILLED, *self.read_columns(), *chain.from_iterable(needs)}

    def has_pairs(self, part: PlannedPart) -> bool:
        """Check whether the target of a loss, or the positive, has its own column."""
        target = part.options.target if isinstance(part.options, LossOptions) else "positive"
        columns = {view.name: view.column for view in self.views}
        return columns.get(target, columns.get("positive")) not in (None, columns["anchor"])
