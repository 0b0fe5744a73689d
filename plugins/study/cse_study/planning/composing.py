"""From the settings of a point to a checked composition, its recipe and its key.

The key of a run is a digest of everything that its weights follow from.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from cse import Composition, as_recipe
from cse_cli.api import (
    Choice,
    Installed,
    Models,
    absolute_path,
    check_read,
    composition_of,
    with_absolute_paths,
)
from cse_core.errors import CseError, did_you_mean
from cse_study.definition.reading import RUN, check_count
from cse_study.definition.schema import KINDS, UNTRAINED, flat

STARTER = "starter"
"""Stands for every role that nothing was named for."""
NONE = "none"
LENGTH = 16
"""Letters of a key."""
NO_MATTER = ("report", "device", "threads", "log_steps", "save_steps")
"""Options of ``train`` that say how a run is made and watched; its weights do not follow from
them, but for the rounding of a device."""
_GONE = {"dropout_bits": 16}
"""Options of ``train`` that are gone, with the value of every run that was made before: it is
found again by its key."""
_NEW = {"normalize": False, "weights": "new", "bias": True, "blank": "drop", "dimensions": [],
        "dimension_weights": [], "train_layers": [], "layer_decay": 1.0,
        "include_prompt": True, "frozen": False, "shifted": False, "held_out": 0,
        "select_start": False, "merge": [], "titles": "before", "level": "all",
        "ensemble": [], "join": "mean", "keep_checkpoints": True, "lists": "rows",
        "best": "highest", "candidates": "batch", "like": "", "compile": False}  # fmt: skip
"""Options that came later, each with the value that changes nothing: a run that was made before is
found again by its key."""
_SAME_NUMBERS = ("gradient_checkpointing",)
"""Options of ``model`` that save memory and change no bit of a weight."""


@dataclass(frozen=True)
class Inputs:
    """Models and texts that were named for roles; an empty role is every one without its own.

    Attributes:
        models: By the role behind ``@model:``.
        data: Files by role, ``sentences``, ``documents``.
        dev: Dev sets; without any, the starter's pairs.
    """

    models: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, Sequence[str]] = field(default_factory=dict)
    dev: Sequence[str] = ()

    @staticmethod
    def of(models: Sequence[str], data: Sequence[str], dev: Sequence[str]) -> Inputs:
        """Parse the values of flags, each ``NAME`` or ``ROLE=NAME``; a role has one model."""
        chosen: dict[str, str] = {}
        for role, name in map(_split, models):
            if role in chosen:
                what = "two models for one role" if role else "two models without a role"
                hint = "write --model ROLE=NAME for a role such as @model:ROLE"
                raise CseError(what, where="--model", value=name, hint=hint)
            chosen[role] = name
        files: dict[str, list[str]] = {}
        for role, name in map(_split, data):
            files.setdefault(role, []).append(name)
        return Inputs(chosen, files, tuple(dev))

    def whole(self, plugins: Installed) -> Inputs:
        """Return them with files and folders by their whole paths, whose contents are in keys."""
        registry = plugins.registry
        return replace(
            self,
            models={role: absolute_path(name, registry) for role, name in self.models.items()},
            data={role: [absolute_path(name, registry) for name in names]
                  for role, names in self.data.items()},
        )  # fmt: skip

    def of_role(self, text: str) -> list[str]:
        """Return the values that stand for a role, ``@sentences``."""
        role = text.removeprefix("@")
        if role == "dev":
            return list(self.dev) or [STARTER]
        head, _, which = role.partition(":")
        model = head == "model"
        named: Mapping[str, Any] = self.models if model else self.data
        name = which if model else role
        if named and not named.keys() & {name, ""}:
            what, flag = ("no model is", "--model") if model else ("no texts are", "--data")
            hint = f"{flag} {f'{name}=' if name else ''}{'NAME' if model else 'FILE'} names them"
            raise CseError(f"{what} named for {text}", where=flag, hint=hint)
        found = named.get(name, named.get("", STARTER))
        return [found] if isinstance(found, str) else list(found)

    def has(self, text: str, plain: Collection[str]) -> bool:
        """Tell whether something was named for a role, the starter where nothing was named at all.

        Texts that were named without a role stand for the roles of ``plain`` too.
        """
        role = text.removeprefix("@")
        if role == "dev" or role.partition(":")[0] == "model":
            return True
        return not self.data or role in self.data or ("" in self.data and text in plain)

    def check(self, roles: Sequence[str]) -> None:
        """Refuse names for roles that the study does not have."""
        models = [role[len("@model:") :] for role in roles if role.startswith("@model")]
        data = [role[1:] for role in roles if not role.startswith("@model") and role != "@dev"]
        chosen = {role: [name] for role, name in self.models.items()}
        dev = {"": self.dev} if self.dev else {}
        for flag, named, known in (("--model", chosen, models), ("--data", self.data, data),
                                   ("--dev", dev, [""] * ("@dev" in roles))):  # fmt: skip
            for role, names in named.items():
                if not known:
                    what = "the study has no role for it: its file names what it reads"
                    raise CseError(what, where=flag, value=names[0], hint=f"leave {flag} out")
                if role and role not in known:
                    hint = did_you_mean(role, known) if any(known) else "leave the role out"
                    raise CseError("the study has no such role", where=flag, value=role, hint=hint)


def _split(text: str) -> tuple[str, str]:
    role, equals, name = text.partition("=")
    is_named = equals and re.fullmatch(r"@?[\w-]*", role.strip())  # else a file with options
    return (role.strip().removeprefix("@"), name) if is_named else ("", text)


@dataclass(frozen=True)
class Wish:
    """What was asked for beside the study's own file.

    Attributes:
        seeds: How many seeds, or the seeds themselves; None for those of the file.
        points: Which points, as ``--points`` says it.
        steps: Steps of every run.
        suites: Suites of ``cse eval`` in place of what the study is scored on.
        pairs: Files of graded pairs, in the same place.
    """

    seeds: int | Sequence[int] | None = None
    points: Sequence[str] = ()
    steps: int | None = None
    rows: int | None = None
    inputs: Inputs = field(default_factory=Inputs)
    suites: Sequence[str] = ()
    pairs: Sequence[str] = ()
    data_dir: Path | None = None

    def seeds_of(self, own: Sequence[int]) -> tuple[int, ...]:
        """Return the seeds of a study: its own, and then those that follow its largest one."""
        if self.seeds is None:
            return tuple(own)
        if not isinstance(self.seeds, int):
            return tuple(self.seeds)
        check_count("seeds", self.seeds, "write fewer --seeds")
        more = range(max(own) + 1, max(own) + 1 + self.seeds)
        return (*own, *more)[: self.seeds]


def is_role(value: object) -> bool:
    """Tell whether a value of a setting is a role, which something stands for."""
    return (
        isinstance(value, str) and re.fullmatch(r"@(?!none$)\w+|@model:[\w-]+", value) is not None
    )


def filled(value: Any, inputs: Inputs) -> Any:
    """Return a value of a setting with names in the places of roles."""
    if is_role(value):
        names = inputs.of_role(value)
        return names if len(names) > 1 else names[0]
    if isinstance(value, list):
        result: list[Any] = []
        for item in value:
            name = filled(item, inputs)
            result += name if isinstance(name, list) and is_role(item) else [name]
        return result
    if isinstance(value, Mapping):
        return {key: filled(item, inputs) for key, item in value.items()}
    return value


@dataclass(frozen=True)
class PlannedRun:
    """What a study makes: a run that trains, or a call of a command or of a function.

    Attributes:
        key: A digest of what it follows from; runs of one key are one run.
        recipe: The content of the file that ``cse train --recipe`` takes; its ``model.name`` is
            ``@run:KEY`` where it starts from another run, ``@run:KEY/rounds/2`` from a round of
            it. Empty of a call.
        steps: Optimiser steps, None where rounds decide.
        needs: Keys of the runs that it starts from.
        warnings: What its plan warns of.
        untrained: Whether nothing is trained: the model of the recipe is scored as it is.
        selected: Whether a dev set chooses its checkpoint.
        settings: Of a call, with names in the places of roles, and ``@run:KEY`` of runs.
        command: Words of ``cse`` whose JSON is kept, the same places in them.
        call: The function whose result is kept, ``"package.module:function"``.
        composition: Of a run, before it is given to a worker.
    """

    key: str
    recipe: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    steps: int | None = None
    needs: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    untrained: bool = False
    selected: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    call: str = ""
    composition: Composition | None = field(default=None, repr=False, compare=False)

    @property
    def options(self) -> Mapping[str, Any]:
        """Return every resolved setting by its path; a part's begins with its kind and name."""
        return flat_options(self.recipe) if self.recipe else self.settings


def flat_options(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return every setting of a resolved recipe by its path, ``loss.infonce.temperature``."""
    merged: dict[str, Any] = {}
    for table, content in recipe.items():
        if isinstance(content, list):
            for part in content:
                merged |= flat(part, f"{table}.{part.get('name', part.get('use'))}.")
        else:
            merged |= flat({table: content})
    return merged


@dataclass
class Composer:
    """Composes runs; plugins are loaded and texts read once for all of them.

    Of the wish it takes the names for roles, and the steps and rows of every run.
    """

    wish: Wish
    plugins: Installed
    _read: dict[str, bool] = field(default_factory=dict)
    _composed: dict[str, Composition] = field(default_factory=dict)

    def run(
        self,
        settings: Mapping[str, Any],
        seed: int,
        runs: Mapping[str, Mapping[str, Any]],
        above: tuple[str, ...] = (),
    ) -> list[PlannedRun]:
        """Return the run of some settings, behind those that it starts from.

        ``runs`` has the settings of those that it may start from, by name; ``above`` has the names
        of the runs that start from this one.
        """
        model = settings.get("model")
        before: list[PlannedRun] = []
        if isinstance(model, str) and model.startswith(RUN):
            name, slash, inside = model.removeprefix(RUN).partition("/")
            if name in above:
                what = "runs start from each other"
                raise CseError(what, where="runs", value=" -> ".join((*above, name)))
            shared = {key: settings[key] for key in ("data", "dev") if key in settings}
            recipe = {"model": "@model", **shared, **runs[name]}
            before = self.run(recipe, seed, runs, (*above, name))
            # Facts of the encoder are those of the model at the beginning of the chain.
            first = before[0].composition
            assert first is not None
            last = before[-1].composition
            if inside.startswith("rounds/") and last is not None and not last.round_miners:
                raise CseError("has no rounds", where="runs", value=name, hint=f"write {RUN}{name}")
            settings = {**settings, "model": first.model.name}
        start = f"{before[-1].key}{slash}{inside}" if before else None
        return [*before, self._planned(settings, seed, start)]

    def _planned(self, settings: Mapping[str, Any], seed: int, start: str | None) -> PlannedRun:
        given = {path: filled(value, self.wish.inputs) for path, value in settings.items()}
        untrained = given.get("recipe") == UNTRAINED
        if untrained:
            given = {"model": given["model"]} if "model" in given else {}
        plugins, composition = self.plugins, self._composition(given, seed)
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
        needs = () if start is None else (start.partition("/")[0],)
        if start is not None:
            recipe = {**recipe, "model": {**recipe["model"], "name": f"{RUN}{start}"}}
        if untrained:
            recipe = {"model": {"name": recipe["model"]["name"]}}
            key = digest({"untrained": start or model_digest(composition.model.name, plugins)})
            return PlannedRun(key, recipe, seed, 0, needs, untrained=True, composition=composition)
        rounds = bool(composition.round_miners)
        return PlannedRun(
            key=key,
            recipe=recipe,
            seed=seed,
            steps=composition.train.max_steps if rounds else composition.facts.steps,
            needs=needs,
            warnings=composition.warnings,
            selected=self._read[read],
            composition=composition,
        )

    def _composition(self, settings: Mapping[str, Any], seed: int) -> Composition:
        """Return the composition of some settings, made once for all seeds."""
        key = json.dumps(settings, sort_keys=True, default=str)
        if key not in self._composed:
            self._composed[key] = composition_of(self._choice(settings), self.plugins)
        run = self._composed[key]
        return replace(run, train=run.train.model_copy(update={"seed": seed}))

    def _choice(self, settings: Mapping[str, Any]) -> Choice:
        arguments = {name: value for name, value in settings.items() if "." not in name}
        options = {path: value for path, value in settings.items() if "." in path}
        if self.wish.steps is not None and options.get("train.max_steps") != 0:
            options["train.max_steps"] = self.wish.steps
        if self.wish.rows is not None:
            options["data.limit"] = self.wish.rows
        recipe, model = arguments.get("recipe"), arguments.get("model")
        return Choice(
            recipe=None if recipe in (None, NONE) else str(recipe),
            model=None if model is None else str(model),
            data=_names(arguments.get("data")),
            dev=_names(arguments.get("dev")),
            kinds={kind: names for kind in KINDS if (names := _names(arguments.get(kind)))},
            sets=[f"{path}={_typed(value)}" for path, value in options.items()],
        )


def _names(given: Any) -> list[str]:
    if given is None:
        return []
    return [str(item) for item in given] if isinstance(given, list) else [str(given)]


def _typed(value: Any) -> str:
    """Return a value as it is typed on the command line."""
    if value is None:
        return NONE
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def key_of(
    recipe: Mapping[str, Any],
    composition: Composition,
    plugins: Installed,
    start: str | None = None,
) -> str:
    """Return the key of a run.

    Files count by their content and not by their place, the starter's texts and every installed
    encoder too, so that a run of another machine has the same key. ``recipe`` is the content of its
    recipe file, ``start`` the key of the run whose model it starts from, if there is one.
    """
    content: dict[str, Any] = {name: table for name, table in recipe.items() if name != "name"}
    train = {name: value for name, value in content["train"].items() if name not in NO_MATTER}
    train |= _GONE
    model = {name: value for name, value in content["model"].items() if name not in _SAME_NUMBERS}
    model["name"] = start or model_digest(composition.model.name, plugins)
    data = dict(content["data"])
    if composition.read is not None:
        rows = plugins.read(composition.data).corpus(composition.needed_columns)
        data["path"] = rows.fingerprint
    content |= {"train": train, "model": model, "data": data}
    content |= {kind: [_as_before(part) for part in content[kind]] for kind in ("pool", "loss")}
    content |= {n: _as_before(content[n]) for n in ("inference", "data", "train", "model")}
    # Views that follow from the rest, which the recipe of a run names too, identify nothing.
    del content["views"]
    if composition.view_options:
        content["views"] = {
            name: _as_before(options.model_dump(exclude_none=True))
            for name, options in composition.view_options.items()
        }
    return digest(content)


def _as_before(options: Mapping[str, Any]) -> dict[str, Any]:
    kept = {n: value for n, value in options.items() if n not in _NEW or value != _NEW[n]}
    if list(kept.get("others", ())) == ["positive"]:  # of DiffCSE, which read one more view
        kept["second"] = kept.pop("others")[0]
    return kept


def digest(value: Any) -> str:
    """Return the key of plain data, of which texts that name files count by their content."""
    text = json.dumps(_by_content(value), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def model_digest(name: str, plugins: Installed) -> str:
    """Return a digest of an encoder's files, or the name of one that is not on this machine."""
    folder = Models(plugins.registry).find(name)
    return name if folder is None else _folder(str(folder))


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, which is read once as long as it does not change."""
    return _file(str(path), *_state(path))


def _by_content(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _by_content(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_by_content(item) for item in value]
    if isinstance(value, str) and value.startswith((".", "/", "~")):
        path = os.path.expanduser(value)
        if os.path.isdir(path):
            return _folder(path)
        options = ""
        if not os.path.isfile(path):
            path, mark, options = path.partition("?")  # a table, with how it is read
            options = mark + options
        if os.path.isfile(path):
            return _file(path, *_state(path)) + options
    return value


def model_files(folder: Path) -> list[Path]:
    """Return the files of a model's folder that its vectors follow from."""
    endings = (".json", ".safetensors", ".txt", ".model")
    below = sorted(folder.rglob("*"))
    return [entry for entry in below if entry.is_file() and entry.suffix in endings]


def _folder(path: str) -> str:
    """Return a digest of the files that a model consists of, or of all files of another folder."""
    folder = Path(path)
    files = model_files(folder)
    if not {"config.json", "modules.json"} & {*os.listdir(folder)}:
        files = sorted(filter(Path.is_file, folder.rglob("*")))
    parts = [f"{entry.relative_to(path)} {_file(str(entry), *_state(entry))}" for entry in files]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _state(path: str | Path) -> tuple[int, int]:
    about = os.stat(path)
    return about.st_size, about.st_mtime_ns


@cache
def _file(path: str, size: int, changed: int) -> str:
    """Return a file's digest, read once as long as it has this size and time."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
