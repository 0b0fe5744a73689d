"""What the runs of a study are scored on, as words of ``cse eval``."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cse import hub_name, read_table, table_name
from cse_cli.api import Installed, data_folder, known_set
from cse_core.errors import CseError
from cse_core.records import SuiteSpec
from cse_study.definition.reading import Definition
from cse_study.definition.schema import DEV, Scores
from cse_study.execution.jobs import Scoring
from cse_study.planning.composing import STARTER, Inputs, Wish, digest, filled, is_role

_GRADED = ("sts", "chinese", "pairs", "data")
"""Suites and options with graded pairs, whose cosines can be kept."""
_OF_ITEMS = ("transfer", "classify", "retrieval", "collections", "labelled", "documents")
"""Suites and options with documents, queries or labelled texts, whose measures can be kept."""
_TEXTS = ("pairs", "data", "labelled", "documents", "collections")
"""Options of ``cse eval`` that name texts to score on."""
_FILES = ("pairs", "labelled", "documents", "collections")
"""Options that name files, or sets of a suite that lie in its folder."""


@dataclass
class _Words:
    """Words of ``cse eval``, the content that their key is of, and notes of what is left out."""

    folder: Path
    plugins: Installed
    words: list[str] = field(default_factory=list)
    content: list[Any] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    named: set[str] = field(default_factory=set)

    def add(self, name: str, value: Any, *, of: str = "", content: Any = None) -> None:
        """Add an option; ``of`` names the suite or option whose texts it brings."""
        flag = f"--{name.replace('_', '-')}"
        for item in value if isinstance(value, list) else [value]:
            self.words += [flag] if item is True else [flag, str(item)]
        self.content.append([flag, value if content is None else content])
        self.named |= {of} - {""}

    def add_suites(self, names: Sequence[str], *, asked: bool) -> None:
        """Add suites as far as their files are here; one that was asked for has to be."""
        for name in names:
            self.plugins.registry.one(SuiteSpec, name)
            files = self.plugins.locate(name, self.folder).there
            hint = "--data-dir names another"
            if files:
                content = {file: _content(str(path.resolve())) for file, path in files.items()}
                self.add("suite", name, of=name, content=content)
            elif asked:
                what = f"no file of it is in {self.folder}"
                raise CseError(what, where="--suite", value=name, hint=hint)
            else:
                self.notes.append(f"suite {name}: no file of it in {self.folder}; {hint}")
        if self.named:  # by name: a worker elsewhere may know another one
            self.words += ["--data-dir", os.path.abspath(self.folder)]

    def add_option(self, name: str, value: Any) -> None:
        """Add an option with whole paths of files, as far as they are here."""
        kept: list[Any] = []
        content: list[Any] = []
        for item in value if isinstance(value, list) else [value]:
            path = self._file(name, item) if isinstance(item, str) else item
            kept += [] if path is None else [path]
            content += [] if path is None else [_content(path)]
            if path is None:
                what = f"no {item} here, so it is left out; see --data-dir, --data"
                self.notes.append(f"{name}: {what}")
        if kept:
            self.add(name, kept, of=name if name in _TEXTS else "", content=content)

    def _file(self, name: str, value: str) -> str | None:
        """Return a value of an option: a file by its whole path, None where it is not here."""
        if name == "documents" and value in self.plugins.datasets:
            return value
        if os.path.isfile(value) or (name == "collections" and os.path.isdir(value)):
            return os.path.abspath(value)
        if name not in _FILES or hub_name(value) is not None:
            return value
        for suite in self.plugins.suites:
            files = self.plugins.locate(suite, self.folder).there
            if value in files:
                return str(files[value].resolve())
        return None


def _content(value: Any) -> Any:
    """Return a value of an option with the files of a folder, whose contents are in keys."""
    if isinstance(value, str) and os.path.isdir(value):
        files = filter(Path.is_file, Path(value).rglob("*"))
        return {str(file.relative_to(value)): str(file) for file in sorted(files)}
    return value


def plan_scoring(
    scores: Scores, wish: Wish, plugins: Installed, trained: Collection[str] = ()
) -> Scoring:
    """Plan the scoring of runs: on the sets of the study that are here, else on the starter's.

    What was asked for in place of the study's sets has to be here. What was named without a role
    stands only for those in ``trained``: texts that train seldom have the labels or titles that
    scores need.
    """
    folder, origin = data_folder(wish.data_dir)
    if wish.data_dir is not None and not folder.is_dir():
        raise CseError("no such folder", where=origin, value=str(folder))
    made = _Words(folder, plugins)
    asked = bool(wish.suites or wish.pairs)
    made.add_suites(wish.suites if asked else scores.suites, asked=asked)
    for name in wish.pairs:
        file = known_set(name, plugins, "--pairs")
        if hub_name(file) is None:
            read_table(file)
            file = str(Path(file).absolute())
        made.add("pairs", file, of="pairs")
    for name, value in scores.options.items():
        role = str(value).removeprefix("@")
        named = is_role(value) and value not in trained and role in wish.inputs.data
        if asked and name in _TEXTS and not named:
            continue
        if is_role(value) and not wish.inputs.has(value, trained):
            made.notes.append(f"{name}: left out; --data {role}=FILE names texts for it")
            continue
        made.add_option(name, filled(value, wish.inputs))
    if not made.named:
        made.add("data", STARTER, of="data")
    made.add("no-baselines", True)
    heads = {name.partition(".")[0] for name in scores.shown}
    version = next((c.info.label for c in plugins.commands.all if c.name == "eval"), "")
    return Scoring(
        digest([made.content, version]), tuple(made.words), bool(made.named & set(_GRADED)),
        bool(made.named & set(_OF_ITEMS)), tuple(made.notes), DEV in heads,
    )  # fmt: skip


def showing(definition: Definition, inputs: Inputs) -> Definition:
    """Return a study that shows the sets of the files that were named, in the places of roles.

    A claim of a role is one of each of its sets.
    """
    study, scores = definition.study, definition.study.scores
    sets = {text: list(map(table_name, inputs.data.get(text.removeprefix("@"), ())))
            if is_role(text) else [text] for text in scores.shown}  # fmt: skip
    smallest = {name: scores.smallest_of(text) for text, names in sets.items() for name in names}
    scores = scores.model_copy(update={"shown": [*smallest], "smallest": smallest})
    claims = [claim.model_copy(update={"score": name}) for claim in study.claims
              for name in sets.get(claim.score, [claim.score])]  # fmt: skip
    changed = study.model_copy(update={"scores": scores, "claims": claims})
    return replace(definition, study=changed)
