"""A typed recipe on its way to a composition: parts and settings that are not yet checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from cse_core.errors import CseError
from cse_core.options import LossOptions, MinerOptions, StoreOptions
from cse_core.recipes.composition import PlannedPart
from cse_core.recipes.settings import (
    COLUMNS,
    DataOptions,
    InferenceOptions,
    ModelOptions,
    TrainOptions,
    ViewOptions,
)
from cse_core.records import AugmenterSpec, Facts, Kind, MinerSpec
from cse_core.registry.registry import Registry
from cse_core.vocabulary import flatten

BASE_VIEWS = ("anchor", "positive", "identical")
"""Views that the core makes of the text alone."""
BASE_LEVELS = ("sentence", "input")
"""Levels that every run has."""
VIEW_COLUMNS = tuple(name for name in COLUMNS if name not in ("text", "document", "title"))
"""Columns that make a view of their own name."""


@dataclass
class Sketch:
    """Parts and settings of a run, typed and not yet checked; the checks add to the lists.

    Attributes:
        views: Settings of views that the recipe or the command line names.
        groups: Miners by the group of positives that they find.
        made: Parts by the view that they make.
    """

    registry: Registry
    parts: list[PlannedPart]
    views: dict[str, ViewOptions]
    model: ModelOptions
    data: DataOptions
    train: TrainOptions
    inference: InferenceOptions
    facts: Facts
    errors: list[CseError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    groups: dict[str, PlannedPart] = field(default_factory=dict)
    made: dict[str, PlannedPart] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for part in self.parts:
            for token in flatten(part.spec.provided(part.options)):
                prefix, _, name = token.partition(":")
                if prefix == "positives" and part.kind == "positives":
                    self.groups.setdefault(name, part)
                if prefix == "view":
                    self.made.setdefault(name, part)

    def of(self, kind: Kind) -> list[PlannedPart]:
        """Return the parts of a kind, in order."""
        return [part for part in self.parts if part.kind == kind]

    def losses(self) -> Iterator[tuple[PlannedPart, LossOptions]]:
        """Yield the losses with their options."""
        for part in self.of("loss"):
            yield part, cast(LossOptions, part.options)

    def stores(self) -> Iterator[tuple[PlannedPart, StoreOptions]]:
        """Yield the negative stores with their options."""
        for part in self.of("negatives"):
            yield part, cast(StoreOptions, part.options)

    def miners(self) -> Iterator[tuple[PlannedPart, MinerOptions]]:
        """Yield the positive miners with their options."""
        for part in self.of("positives"):
            yield part, cast(MinerOptions, part.options)

    def rounds(self) -> list[PlannedPart]:
        """Return the miners that mine between rounds."""
        return [part for part in self.of("positives") if cast(MinerSpec, part.spec).rounds]

    def has_view(self, name: str) -> bool:
        """Tell whether a view can be in the run: the core's, a part's, a column's or declared."""
        if name in BASE_VIEWS or name in self.made:
            return True
        if name in self.views and self.views[name].column is not None:
            return True
        return name in VIEW_COLUMNS and (self.facts.columns is None or name in self.facts.columns)

    def view_names(self) -> list[str]:
        """Return the views that can be in the run, for hints."""
        declared = [name for name in (*self.views, *VIEW_COLUMNS) if self.has_view(name)]
        return list(dict.fromkeys([*BASE_VIEWS, *self.made, *declared]))

    def serves(self, store: PlannedPart, loss: PlannedPart) -> bool:
        """Tell whether a loss sees the negatives of a store."""
        held, wants = cast(StoreOptions, store.options), cast(LossOptions, loss.options)
        if held.level != wants.level:
            return False
        if isinstance(wants.negatives, tuple):
            return store.name in wants.negatives
        return wants.negatives in ("all", "stored")


def augmented_views(part: PlannedPart) -> tuple[str, ...]:
    """Return the views that an augmenter changes."""
    chosen = getattr(part.options, "views", None)
    return tuple(chosen) if chosen is not None else cast(AugmenterSpec, part.spec).views


def tokens(part: PlannedPart) -> set[str]:
    """Return every token that a part provides."""
    return set(flatten(part.spec.provided(part.options)))
