"""The suite of recipes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch

from cse_core.errors import CseError
from cse_core.recipes.compose import resolve
from cse_core.recipes.composition import Composition
from cse_core.registry.registry import Registry
from cse_testkit.corpora import tiny_corpus
from cse_testkit.encoders import shared_encoder
from cse_testkit.installed import installed_registry
from cse_testkit.promises import BrokenPromise, after, promise
from cse_testkit.recipe_settings import ENCODERS, differences, read_settings, settings_of
from cse_testkit.rigs import Rig, compose


class RecipeSuite:
    """What a recipe promises.

    The settings that a paper gives for each encoder are one table::

        class TestSimcse(RecipeSuite):
            recipe = "simcse"
            expects = {"bert-base": {"train.batch_size": 64, "train.lr": 3e-5}}

    Attributes:
        recipe: Its name.
        settings: A file with every setting for each encoder, each with its source, as
            ``cse_testkit.recipe_settings`` describes it; None where there is none.
        expects: Values by encoder (a key of ``ENCODERS``) and option path.
        columns: Columns of the made-up corpus that it trains on; by default ``text`` and those
            that its views and parts ask for.
        sets: Settings that a run of it needs.
        registry: Where it is found; None is what is installed.
        steps: Steps to train.
    """

    recipe: ClassVar[str]
    settings: ClassVar[Path | None] = None
    expects: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    columns: ClassVar[Sequence[str] | None] = None
    sets: ClassVar[Sequence[str]] = ()
    registry: ClassVar[Registry | None] = None
    steps: ClassVar[int] = 3

    def resolved(self, encoder: str) -> Composition:
        """Return the recipe resolved for an encoder of ``ENCODERS``."""
        registry = self.registry or installed_registry()
        facts = ENCODERS[encoder]
        try:
            return resolve(
                registry, recipe=self.recipe, model=facts.model, sets=self.sets, facts=facts
            )
        except CseError as error:
            raise BrokenPromise(f"{self.recipe} for {encoder}: {error}") from None

    def test_it_resolves_for_every_encoder(self) -> None:
        """The composer accepts it for each of ``ENCODERS``."""
        for encoder in ENCODERS:
            composition = self.resolved(encoder)
            promise(bool(composition.of("loss")), f"{self.recipe} for {encoder} has no loss")

    @after("test_it_resolves_for_every_encoder")
    def test_it_has_the_expected_settings(self) -> None:
        """Each value of ``expects`` is what the recipe says for that encoder."""
        for encoder, values in self.expects.items():
            composition = self.resolved(encoder)
            for path, wanted in values.items():
                found = value_at(composition, path)
                promise(
                    found == wanted, f"{self.recipe} for {encoder}: {path} is {found}, not {wanted}"
                )

    @after("test_it_resolves_for_every_encoder")
    def test_it_is_what_its_table_of_settings_says(self) -> None:
        """For each encoder of the table, every part, option and view is in it with its value."""
        tables = read_settings(self.settings) if self.settings is not None else {}
        for encoder, wanted in tables.items():
            lines = differences(settings_of(self.resolved(encoder)), wanted)
            promise(not lines, f"{self.recipe} for {encoder}: " + "; ".join(lines))

    @after("test_it_resolves_for_every_encoder")
    def test_it_trains_on_a_tiny_encoder(self) -> None:
        """Some steps with a tiny encoder leave finite losses and gradients, and move weights."""
        corpus = tiny_corpus(columns=self._columns())
        registry = self.registry or installed_registry()
        try:
            composition = compose(
                recipe=self.recipe,
                sets=self.sets,
                registry=registry,
                encoder=shared_encoder(),
                corpus=corpus,
            )
        except CseError as error:
            raise BrokenPromise(f"{self.recipe} on the tiny encoder: {error}") from None
        rig = Rig(composition, corpus, registry=registry)
        before = rig.weights()
        for number, result in enumerate(rig.step(self.steps)):
            promise(
                bool(torch.isfinite(result.loss)),
                f"{self.recipe}: the loss of step {number + 1} is {float(result.loss)}",
            )
        promise(not rig.bad_gradients, f"{self.recipe}: gradients {sorted(rig.bad_gradients)[:3]}")
        after = rig.weights()
        moved = [name for name in before if not torch.equal(before[name], after[name])]
        promise(bool(moved), f"{self.recipe}: {self.steps} steps left every weight as it was")

    def _columns(self) -> list[str]:
        if self.columns is not None:
            return list(self.columns)
        composition = self.resolved("starter")
        wanted = [view.column for view in composition.views if view.column is not None]
        for part in composition.parts:
            for need in part.spec.required(part.options):
                tokens = (need,) if isinstance(need, str) else need[:1]
                wanted += [t.partition(":")[2] for t in tokens if t.startswith("column:")]
        if composition.data.unit != "sentence" or any(
            getattr(part.spec, "rounds", False) for part in composition.parts
        ):
            wanted += ["document", "title"]
        return list(dict.fromkeys(wanted))


def value_at(composition: Composition, path: str) -> Any:
    """Return the value of an option by its path: ``train.lr``, ``loss.infonce.temperature``.

    Raises:
        BrokenPromise: If the run has no such part or option.
    """
    table, _, rest = path.partition(".")
    holder: Any = getattr(composition, table, None)
    if table == "params":
        return composition.params.get(rest)
    if holder is None:
        name, _, rest = rest.partition(".")
        holder = next(
            (each.options for each in composition.parts if each.path == f"{table}.{name}"), None
        )
        promise(holder is not None, f"no part {table}.{name}")
    promise(hasattr(holder, rest), f"no option {path}")
    return getattr(holder, rest)
