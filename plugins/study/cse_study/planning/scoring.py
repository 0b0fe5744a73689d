"""What the runs of a study are scored on, as words of ``cse eval``."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cse_cli.machine.caches import cache_folder
from cse_cli.plugins.data_folder import data_folder
from cse_cli.plugins.installed import Installed
from cse_cli.plugins.known_sets import known_set
from cse_cli.texts.tables import stem
from cse_core.data.files import open_file
from cse_core.data.sources import hub_name
from cse_core.errors import CseError
from cse_core.runtime.atomic_files import atomic_file
from cse_core.runtime.loading import load_factory
from cse_study.definition.reading import Definition
from cse_study.definition.schema import Scores
from cse_study.execution.jobs import Scoring
from cse_study.planning.inputs import STARTER, Inputs, filled, is_role
from cse_study.planning.keys import digest

GRADED = ("sts", "chinese")
"""Suites of graded pairs, whose cosines can be kept."""
OF_ITEMS = ("transfer", "classify", "retrieval")
"""Suites of documents or labelled texts, whose ranks and hits can be kept."""
_TEXTS = ("pairs", "data", "labelled", "documents")
"""Options of ``cse eval`` that name texts to score on."""


_FILES = ("pairs", "labelled", "documents", "candidates", "idf")
"""Options that name files, or sets of a suite that lie in its folder."""


@dataclass(frozen=True)
class ScoreWish:
    """What was asked for in place of what the study is scored on.

    Attributes:
        suites: Suites of ``cse eval``.
        data_dir: Folder of their files.
        pairs: Files of graded pairs.
    """

    suites: Sequence[str] = ()
    data_dir: Path | None = None
    pairs: Sequence[str] = ()


@dataclass(frozen=True)
class PlannedScoring:
    """How runs are scored, and what had to be left out of the study's own words."""

    scoring: Scoring
    notes: tuple[str, ...] = ()


@dataclass
class _Words:
    words: list[str] = field(default_factory=list)
    content: list[Any] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    named: bool = False
    graded: bool = False
    items: bool = False

    def add(self, flag: str, value: Any, content: Any = None) -> None:
        for each in value if isinstance(value, list | tuple) else [value]:
            self.words += [flag] if each is True else [flag, str(each)]
        self.content.append([flag, value if content is None else content])


def plan_scoring(
    scores: Scores,
    wish: ScoreWish,
    inputs: Inputs,
    plugins: Installed,
    trained: Collection[str] = (),
) -> PlannedScoring:
    """Return how runs are scored: on the study's sets as far as they are here, else the starter's.

    Args:
        scores: What the study is scored on.
        wish: What was asked for in its place.
        inputs: What stands for roles.
        plugins: What is installed.
        trained: Roles of texts that train. What was named without a role stands for these alone:
            texts that train have seldom the labels or titles that scores need.

    Raises:
        CseError: If a suite is unknown, its class cannot be imported, or what was asked for in
            place of the study's own is not here.
    """
    folder, origin = data_folder(wish.data_dir)
    if wish.data_dir is not None and not folder.is_dir():
        raise CseError("no such folder", where=origin, value=str(folder))
    made = _Words()
    if wish.suites or wish.pairs:
        _suites(made, wish.suites, wish, plugins, asked=True)
        _pairs(made, wish.pairs, plugins)
        options = {name: value for name, value in scores.options.items() if name not in _TEXTS}
    else:
        _suites(made, scores.suites, wish, plugins, asked=False)
        options = scores.options
    for name, value in options.items():
        if is_role(value) and not inputs.has(value, trained):
            role = value.removeprefix("@")
            made.notes.append(f"{name}: left out; --data {role}=FILE names texts for it")
            continue
        _option(made, name, value, wish, inputs, plugins)
    if not made.named:
        made.add("--data", STARTER)
        made.graded = True
    made.add("--no-baselines", True)
    key = digest([made.content, plugins_version(plugins)])
    scoring = Scoring(key, tuple(made.words), made.graded, made.items)
    return PlannedScoring(scoring, tuple(made.notes))


def showing(definition: Definition, inputs: Inputs) -> Definition:
    """Return a study that shows the sets of the files that were named, in the places of roles."""
    scores, shown = definition.study.scores, list[str]()
    for each in scores.columns:
        files = inputs.data.get(each.removeprefix("@"), ())
        shown += map(stem, files) if is_role(each) else [each]
    filled = definition.study.model_copy(
        update={"scores": scores.model_copy(update={"shown": shown})}
    )
    return replace(definition, study=filled)


def plugins_version(plugins: Installed) -> str:
    """Return the version of what scores."""
    return next((c.label for c in plugins.commands.all if c.name == "eval"), "")


def _suites(
    made: _Words, names: Sequence[str], wish: ScoreWish, plugins: Installed, *, asked: bool
) -> None:
    folder, _ = data_folder(wish.data_dir)
    for name in names:
        plugins.registry.suite(name)
        there = plugins.locate(name, folder).there
        if not there and asked:
            hint = "--data-dir names another"
            raise CseError(f"no file of it is in {folder}", where="--suite", value=name, hint=hint)
        if not there:
            made.notes.append(f"suite {name}: no file of it in {folder}; --data-dir names another")
            continue
        made.add("--suite", name, {file: str(path.resolve()) for file, path in there.items()})
        made.named, made.graded = True, made.graded or name in GRADED
        made.items = made.items or name in OF_ITEMS
    if made.named:  # by name: a worker elsewhere may know another one
        made.words += ["--data-dir", os.path.abspath(folder)]


def _pairs(made: _Words, names: Sequence[str], plugins: Installed) -> None:
    for name in names:
        file = known_set(name, plugins, "--pairs")
        if hub_name(file) is None:
            file = str(open_file(file, Path(file)).path.absolute())
        made.add("--pairs", file)
        made.named = made.graded = True


def _option(
    made: _Words, name: str, value: Any, wish: ScoreWish, inputs: Inputs, plugins: Installed
) -> None:
    given = filled(value, inputs)
    kept: list[Any] = []
    for each in given if isinstance(given, list) else [given]:
        found = _file(name, each, wish, plugins) if isinstance(each, str) else each
        if found is None:
            made.notes.append(f"{name}: no {each} here, so it is left out; see --data-dir, --data")
        else:
            kept.append(found)
    if not kept:
        return
    made.add(f"--{name.replace('_', '-')}", kept)
    made.named = made.named or name in _TEXTS
    made.graded = made.graded or name in ("pairs", "data")
    made.items = made.items or name in ("labelled", "documents")


def _file(name: str, value: str, wish: ScoreWish, plugins: Installed) -> str | None:
    """Return a value of an option: a file by its whole path, None where no such file is there."""
    if name == "documents" and plugins.registry.has("dataset", value):
        return str(documents_of(value, plugins))
    if os.path.isfile(value):
        return os.path.abspath(value)
    if name not in _FILES or hub_name(value) is not None:
        return value
    folder, _ = data_folder(wish.data_dir)
    for suite in plugins.suites:
        there = plugins.locate(suite, folder).there
        if value in there:
            return str(there[value].resolve())
    return None


def documents_of(name: str, plugins: Installed) -> Path:
    """Return a file with the documents and titles of an installed data set.

    It is made where it is not there, in the folder of caches.
    """
    found = plugins.registry.dataset(name)
    folder = (cache_folder() or Path(tempfile.gettempdir(), "cse")) / "study"
    file = folder / f"{found.distribution}-{found.version}-{found.name}.jsonl"
    if not file.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        rows: list[Mapping[str, str]] = list(load_factory(found.spec.factory)().rows())
        wanted = ("text", "document", "title")
        with atomic_file(file) as beside, beside.open("w", encoding="utf-8") as lines:
            for row in rows:
                kept = {column: row[column] for column in wanted}
                lines.write(json.dumps(kept, ensure_ascii=False) + "\n")
    return file
