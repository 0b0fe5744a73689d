"""From the settings of a point to a checked composition and its recipe, before anything runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cse_cli.options.flags import PART_FLAGS, Choice
from cse_cli.plugins.installed import Installed
from cse_cli.training.resolving import resolve_choice, with_absolute_paths
from cse_cli.training.train_checks import check_read
from cse_core.errors import CseError
from cse_core.recipes.composition import Composition
from cse_core.training.recipe_file import as_recipe
from cse_study.definition.schema import flat
from cse_study.planning.inputs import RUN, Inputs, filled
from cse_study.planning.keys import digest, key_of, model_digest

NONE = "none"
UNTRAINED = "@none"
"""A recipe: the model is scored as it is."""


@dataclass(frozen=True)
class PlannedRun:
    """A run of a study, or one that others start from.

    Attributes:
        key: A digest of what its weights follow from; runs of one key are one run.
        recipe: The content of the file that ``cse train --recipe`` takes; its ``model.name`` is
            ``@run:KEY`` where it starts from another run.
        seed: Its seed.
        steps: Optimiser steps, None where rounds decide.
        start: Key of the run whose model it starts from.
        warnings: What its plan warns of.
        without: Plugins that it leaves out.
        untrained: Whether nothing is trained: the model of the recipe is scored as it is.
        selected: Whether a dev set chooses its checkpoint.
    """

    key: str
    recipe: Mapping[str, Any]
    seed: int
    steps: int | None
    start: str | None = None
    warnings: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    untrained: bool = False
    selected: bool = False
    composition: Composition | None = field(default=None, repr=False, compare=False)

    @property
    def options(self) -> dict[str, Any]:
        """Return every resolved setting by its path; a part's begins with its kind and name."""
        return flat_options(self.recipe)


def flat_options(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return every setting of a resolved recipe by its path, ``loss.infonce.temperature``."""
    found: dict[str, Any] = {}
    for table, content in recipe.items():
        parts = content if isinstance(content, list) else ()
        for part in parts:
            found |= flat(part, f"{table}.{part.get('name', part.get('use'))}.")
        found |= {} if isinstance(content, list) else flat({table: content})
    return found


@dataclass
class Composer:
    """Composes runs; plugins are loaded and texts read once for all of them.

    Attributes:
        inputs: What stands for roles.
        steps: ``train.max_steps`` of every run; None leaves it.
        rows: ``data.limit`` of every run; None leaves it.
    """

    inputs: Inputs
    steps: int | None = None
    rows: int | None = None
    _plugins: dict[tuple[str, ...], Installed] = field(default_factory=dict)
    _read: dict[str, bool] = field(default_factory=dict)

    def run(
        self,
        settings: Mapping[str, Any],
        seed: int,
        runs: Mapping[str, Mapping[str, Any]],
        above: tuple[str, ...] = (),
    ) -> list[PlannedRun]:
        """Return the run of some settings, behind those that it starts from.

        Args:
            settings: Of the run.
            seed: Its seed.
            runs: Settings of the runs that it may start from, by name.
            above: Names of the runs that start from this one.

        Raises:
            CseError: If it cannot be composed.
        """
        model = settings.get("model")
        before: list[PlannedRun] = []
        if isinstance(model, str) and model.startswith(RUN):
            name = model.removeprefix(RUN)
            if name in above:
                what = "runs start from each other"
                raise CseError(what, where="runs", value=" -> ".join((*above, name)))
            shared = {key: settings[key] for key in ("data", "dev", "without") if key in settings}
            own = {"model": "@model", **shared, **runs[name]}
            before = self.run(own, seed, runs, (*above, name))
            # Facts of the encoder are those of the model at the beginning of the chain.
            first = before[0].composition
            assert first is not None
            settings = {**settings, "model": first.model.name}
        start = before[-1].key if before else None
        return [*before, self._planned(settings, seed, start)]

    def _planned(self, settings: Mapping[str, Any], seed: int, start: str | None) -> PlannedRun:
        given = {path: filled(value, self.inputs) for path, value in settings.items()}
        untrained = given.get("recipe") == UNTRAINED
        if untrained:
            given = {name: given[name] for name in ("model", "without") if name in given}
        choice, without = self._choice(given, seed)
        plugins = self.plugins(without)
        composition = resolve_choice(choice, plugins)
        # What is read for several points is looked at once: their texts and dev sets are equal.
        read = json.dumps(
            [composition.data.model_dump(), composition.needed_columns, composition.train.dev,
             composition.train.select, composition.train.device],
            default=str,
        )  # fmt: skip
        if read not in self._read:
            self._read[read] = bool(check_read(composition, plugins))
        recipe = as_recipe(with_absolute_paths(composition, plugins.registry))
        key = key_of(recipe, composition, plugins, start)
        if start is not None:
            recipe = {**recipe, "model": {**recipe["model"], "name": f"{RUN}{start}"}}
        if untrained:
            recipe = {"model": {"name": recipe["model"]["name"]}}
            key = digest({"untrained": start or model_digest(composition.model.name, plugins)})
            return PlannedRun(key, recipe, seed, 0, start, without=tuple(without),
                              untrained=True, composition=composition)  # fmt: skip
        rounds = bool(composition.round_miners)
        return PlannedRun(
            key=key,
            recipe=recipe,
            seed=seed,
            steps=composition.train.max_steps if rounds else composition.facts.steps,
            start=start,
            warnings=composition.warnings,
            without=tuple(without),
            selected=self._read[read],
            composition=composition,
        )

    def plugins(self, without: list[str]) -> Installed:
        """Return the installed plugins but some."""
        return self._plugins.setdefault(tuple(without), Installed(without))

    def _choice(self, settings: Mapping[str, Any], seed: int) -> tuple[Choice, list[str]]:
        arguments = {name: value for name, value in settings.items() if "." not in name}
        options = {path: value for path, value in settings.items() if "." in path}
        if self.steps is not None:
            options["train.max_steps"] = self.steps
        if self.rows is not None:
            options["data.limit"] = self.rows
        options["train.seed"] = seed
        recipe, model = arguments.get("recipe"), arguments.get("model")
        return (
            Choice(
                recipe=None if recipe in (None, NONE) else str(recipe),
                model=None if model is None else str(model),
                data=_names(arguments.get("data")),
                dev=_names(arguments.get("dev")),
                kinds={kind: names for kind in PART_FLAGS
                       if (names := _names(arguments.get(kind)))},
                sets=[f"{path}={_typed(value)}" for path, value in options.items()],
            ),
            _names(arguments.get("without")),
        )  # fmt: skip


def _names(given: Any) -> list[str]:
    if given is None:
        return []
    return [str(each) for each in given] if isinstance(given, list) else [str(given)]


def _typed(value: Any) -> str:
    """Return a value as it is typed on the command line."""
    if value is None:
        return NONE
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
