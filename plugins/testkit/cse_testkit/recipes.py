"""The suite of recipes, and the table of a recipe's settings that it may be compared with.

The table is a TOML file: a section for each encoder, the first one whole, the others with what
differs from it; a row is a value, or ``absent`` for a part, and where it comes from::

    [bert-base]
    "train.lr" = [3e-5, "paper, Table 7"]
    "loss.infonce.temperature" = [0.05, "paper, Section 4; run.sh"]
    "loss.infonce.same_text" = ["mask", "ours: docs/methods/simcse.md"]

A table with ``extends = "simcse"`` above its sections lies over ``simcse.toml`` beside it: what it
says of that table's first encoder goes for all encoders.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import torch

from cse import Composition
from cse_cli.api import Registry, resolve
from cse_core.errors import CseError
from cse_core.records import RecipeSpec
from cse_core.run_info import RunInfo
from cse_testkit.promises import Suite, plugins_of
from cse_testkit.runs import Rig, compose, of_dimensions
from cse_testkit.thorough import refused_run
from cse_testkit.tiny import COLUMNS, Columns, declared_columns, shared_encoder, tiny_corpus, typed

ENCODERS: dict[str, RunInfo] = {
    key: RunInfo(
        model=name,
        family=name.partition("-")[0].replace("starter", "bert"),
        hidden=hidden,
        embedding=hidden,
        layers=layers,
        positions=512,
        cased=cased,
        mask_token=True,
        origin=name if name == "starter" else None,
        rows=1_000_000,
        columns=COLUMNS,
    )
    for key, name, hidden, layers, cased in (
        ("bert-base", "bert-base-uncased", 768, 12, False),
        ("bert-base-cased", "bert-base-cased", 768, 12, True),
        ("bert-large", "bert-large-uncased", 1024, 24, False),
        ("roberta-base", "roberta-base", 768, 12, True),
        ("roberta-large", "roberta-large", 1024, 24, True),
        ("starter", "starter", 256, 4, False),
    )
}
"""What is known of the encoders that recipes pick settings for; nothing is loaded."""
DECODERS = {
    family: replace(
        ENCODERS["roberta-large"], model=name, family=family, hidden=4096, embedding=4096,
        layers=32, positions=8192, mask_token=False, causal=True,
    )
    for family, name in (
        ("llama", "meta-llama/Meta-Llama-3-8B"), ("mistral", "mistralai/Mistral-7B-v0.1")
    )
}  # fmt: skip
"""Those of recipes that say in which direction a decoder reads."""
OF_THE_RUN = frozenset(
    {
        *("model.name", "data.path", "data.columns", "data.limit", "data.blank", "train.dev"),
        *("train.report", "train.device", "train.threads", "train.precision", "train.seed"),
        *("train.log_steps", "train.save_steps", "train.keep_checkpoints", "train.save_rounds"),
        *("train.max_steps", "train.compile"),
        *("model.gradient_checkpointing", "model.prompt", "data.held_out", "data.titles"),
        *("inference.normalize", "inference.truncate_dim", "train.select_start"),
        *("inference.ensemble", "inference.join"),
    }
)
"""Settings of a run, a machine or the start, which no paper gives; a table may name one anyway."""
Settings = dict[str, Any]


class RecipeSuite(Suite):
    """What a recipe promises.

    Attributes:
        recipe: Its name.
        settings: A file with every setting for each encoder, each with its source, as this module
            describes it; None where there is none.
        columns: Columns of the made-up corpus that it trains on, as those of a part's suite; by
            default ``text`` and those that its views and parts ask for.
        sets: Settings that a run of it needs.
    """

    recipe: ClassVar[str]
    settings: ClassVar[Path | None] = None
    columns: ClassVar[Columns | None] = None
    sets: ClassVar[Sequence[str]] = ()
    last: ClassVar[tuple[str, ...]] = ("a_real_run_takes_it",)
    thorough: ClassVar[tuple[str, ...]] = last
    _encoders: ClassVar[list[str]]

    def resolved(self, encoder: str) -> Composition:
        """Return the recipe resolved for an encoder of ``ENCODERS``, or of ``DECODERS``."""
        registry = self.installed()
        columns = dict.fromkeys((*COLUMNS, *self.declared(), *_read_in(registry)))
        facts = replace((ENCODERS | DECODERS)[encoder], columns=tuple(columns))
        return resolve(registry, recipe=self.recipe, model=facts.model, sets=self.sets, facts=facts)

    def encoders(self) -> list[str]:
        """Return the names of those that it is for; the first one stands for all.

        Those are not among them whose vectors are narrower than a size of a Matryoshka loss.
        """
        kind = type(self)
        if "_encoders" not in vars(kind):
            try:
                turned = self.resolved("llama").model.attention in ("causal", "bidirectional")
            except CseError:
                turned = False
            names = list(DECODERS if turned else ENCODERS)
            kind._encoders = [name for name in names if not self._too_narrow(name)] or names
        return kind._encoders

    def _too_narrow(self, encoder: str) -> bool:
        try:
            self.resolved(encoder)
        except CseError as error:
            return of_dimensions(error)
        return False

    def declared(self) -> Mapping[str, str | Sequence[str]]:
        """Return the columns that the suite or the plugin's ``pyproject.toml`` declares."""
        columns = declared_columns(self.installed().one(RecipeSpec, self.recipe).distribution)
        return {**columns, **typed(self.columns or ())}

    def promise_it_resolves_for_every_encoder(self) -> None:
        """The composer accepts it for each of ``ENCODERS``, or of ``DECODERS``."""
        for encoder in self.encoders():
            assert self.resolved(encoder).of("loss"), f"{self.recipe} for {encoder} has no loss"

    def promise_it_has_the_expected_settings(self) -> None:
        """Its settings for each encoder are those of the table, and the table lacks none."""
        for encoder, values in (read_settings(self.settings) if self.settings else {}).items():
            settings = settings_of(self.resolved(encoder))
            kept = {p: settings[p] for p in settings if p not in OF_THE_RUN or p in values}
            lines = differences(kept, values)
            assert not lines, f"{self.recipe} for {encoder}: {'; '.join(lines)}"

    def promise_it_trains(self) -> None:
        """Steps with a tiny encoder leave finite losses and gradients, and move weights."""
        rig = Rig(self._composed(), plugins_of(self.registry))
        before = rig.weights()
        rig.step(2)
        assert not (bad := rig.not_finite()), bad
        after = rig.weights()
        moved = any(not torch.equal(before[name], after[name]) for name in before)
        assert moved, "two steps left every weight as it was"

    def promise_a_real_run_takes_it(self) -> None:
        """``cse train`` trains it with its reporters and its choice of a score, and saves a model.

        Graded pairs are its dev set where the recipe names no other.
        """
        run = self._composed("train.max_steps=2")
        assert not (said := refused_run(run, plugins_of(self.registry))), (
            f"cse train refuses it: {said}"
        )

    def _composed(self, *sets: str) -> Composition:
        family: Any = "llama" if "llama" in self.encoders() else "bert"
        return compose(
            recipe=self.recipe,
            sets=[*self.sets, *sets],
            encoder=shared_encoder(family=family),
            registry=self.registry,
            corpus=tiny_corpus(columns=self._columns()),
        )

    def _columns(self) -> Columns:
        if self.columns is not None:
            return self.declared()
        run = self.resolved(self.encoders()[-1])
        wanted = [view.column for view in run.views if view.column is not None]
        needs = (alternatives[0] for part in run.parts for alternatives in part.requires)
        wanted += [need.name for need in needs if need.kind == "column"]
        rounds = any(getattr(part.spec, "rounds", False) for part in run.parts)
        if rounds or run.data.unit != "sentence":
            wanted += ["document", "title"]
        return {**typed(wanted), **run.needed_columns.types, **self.declared()}


@cache
def _read_in(registry: Registry) -> list[str]:
    """Return the columns that installed parts read by default."""
    made = [(part.spec, part.spec.default_options()) for part in registry.parts()]
    return [name for spec, of in made if of is not None for name in spec.declared("reads", of)]


def settings_of(composition: Composition) -> Settings:
    """Return every setting of a composition by its path, as JSON values; None is ``none``.

    A part's own path has the name of its record, a view's has role, column and branch. Options that
    are lists or tables without anything are left out.
    """
    flat: Settings = {}
    for table in ("model", "data", "train", "inference"):
        values = getattr(composition, table).model_dump(mode="json")
        flat.update({f"{table}.{name}": value for name, value in values.items() if value != []})
    for part in composition.parts:
        flat[part.path] = part.use
        given_by_the_model = {"weights", "include_prompt"} if part.kind == "pool" else set()
        if getattr(part.options, "level", None) == "all":
            given_by_the_model.add("level")  # a head of every level, as there were no others
        values = part.options.model_dump(mode="json", exclude=given_by_the_model)
        flat.update(
            {f"{part.path}.{n}": value for n, value in values.items() if value not in ([], {})}
        )
    for view in composition.views:
        made = f"made by {view.made_by}" if view.made_by else f"column {view.column}"
        lists = "" if view.lists == "rows" else f", lists {view.lists}"
        lists += f", weights {view.weights}" if view.weights else ""
        flat[f"views.{view.name}"] = f"{view.role}, {made}, branch {view.branch}{lists}"
    return {path: "none" if value is None else value for path, value in flat.items()}


def read_settings(path: Path) -> dict[str, Settings]:
    """Return the whole table of each encoder of a file, over those of the one that it extends.

    Raises:
        AssertionError: If a row is not a value with a source.
    """
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    parent = tables.pop("extends", None)
    base = read_settings(path.with_name(f"{parent}.toml")) if parent else {}
    first = next(iter(base or tables), "")
    whole: dict[str, Settings] = {}
    for encoder in dict.fromkeys((*base, *tables)):
        known = ENCODERS | DECODERS
        assert encoder in known, f"{path.name}: {encoder} is none of {', '.join(known)}"
        settings = dict(base.get(encoder, base.get(first, {})))
        sections = [tables.get(name, {}) for name in dict.fromkeys((first, encoder))]
        for name, row in (item for rows in sections for item in rows.items()):
            fine = isinstance(row, list) and len(row) == 2 and str(row[1]).strip()
            assert fine, f"{path.name}: {encoder}: {name} is not [value, source]"
            if row[0] == "absent":
                settings = {k: v for k, v in settings.items() if not f"{k}.".startswith(f"{name}.")}
            else:
                settings[name] = row[0]
        whole[encoder] = settings
    return whole


def differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Return a line for each setting that is another, is missing or is not in the table."""
    lines = []
    for path in dict.fromkeys((*wanted, *found)):
        one, two = (side.get(path, "nothing") for side in (found, wanted))
        if one != two:
            lines.append(f"{path}: {one!r}, the table has {two!r}")
    return lines
