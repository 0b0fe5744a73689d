"""The plan of a study: every point composed, as runs or calls, before anything starts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from cse_cli.api import format_value
from cse_core import __version__
from cse_core.errors import CseError, CseErrors, did_you_mean, raise_all
from cse_core.files import RESULT
from cse_core.loading import load_factory
from cse_study.definition.reading import (
    RUN,
    Definition,
    Point,
    check_count,
    chosen_points,
    texts_of,
)
from cse_study.definition.schema import KINDS, Study
from cse_study.execution.folder import StudyFolder, read_table
from cse_study.planning.composing import Composer, PlannedRun, digest, filled, is_role

_SET = re.compile(r"--set ([\w.]+)=(\w+)")
_FLAG = re.compile(rf"add it: --({'|'.join(KINDS)}) (\+[\w-]+)")
_METHOD = {"recipe", *KINDS}
"""Settings that make the places of an axis methods, with options of their own."""
_BRACES = re.compile(r"\{([^{}]+)\}")
_FAILED = float("-inf")
"""Score of a trial that failed, or has no score."""


@dataclass(frozen=True)
class Cell:
    """A point with a seed, and the run or call that its numbers are of."""

    point: Point
    seed: int
    run: PlannedRun


@dataclass(frozen=True)
class Plan:
    """What a study will do.

    Attributes:
        points: The chosen points.
        starts: Runs that others start from, before those that need them.
        kept: Numbers of the points that trials have chosen; empty in a study without trials.
        undecided: Groups of points of which the trials have not ended.
        left_out: Points that cannot be composed, each with its mistakes.
    """

    definition: Definition
    points: tuple[Point, ...]
    seeds: tuple[int, ...]
    cells: tuple[Cell, ...] = ()
    starts: tuple[PlannedRun, ...] = ()
    kept: frozenset[int] = frozenset()
    undecided: int = 0
    left_out: Mapping[int, Sequence[CseError]] = field(default_factory=dict)

    @property
    def shown(self) -> tuple[Point, ...]:
        """Return the points of the table: those that trials have chosen, else all.

        Of trials that have not ended beside others that have, the first stands for what they lack.
        """
        tuned, kept = self.definition.study.tuned, self.kept
        if not kept:
            return self.points
        chosen = {p.label_without(tuned): p for p in self.points if p.number in kept}
        first = {p.label_without(tuned): p for p in reversed(self.points)}
        numbers = {p.number for p in {**first, **chosen}.values()}
        return tuple(p for p in self.points if p.number in numbers)

    @property
    def runs(self) -> dict[str, PlannedRun]:
        """Return each run once by its key, those first that others start from."""
        return {run.key: run for run in [*self.starts, *(cell.run for cell in self.cells)]}

    @property
    def scored(self) -> frozenset[str]:
        """Return the keys of the runs that are scored: of trials those of the chosen points."""
        tuned = self.definition.study.tune is not None
        return frozenset(
            cell.run.key for cell in self.cells if not tuned or cell.point.number in self.kept
        )

    @property
    def names(self) -> dict[str, str]:
        """The name of each run in lines of output: its first point and its seed."""
        names = {run.key: f"a run to start from, {run.recipe.get('name', '')}"
                 for run in self.starts}  # fmt: skip
        for cell in self.cells:
            seed = f", seed {cell.seed}" if len(self.seeds) > 1 else ""
            names.setdefault(cell.run.key, f"{cell.point.label}{seed}")
        return names

    def to_json(self) -> dict[str, Any]:
        """Return it as data that JSON can hold."""
        study = self.definition.study
        return {
            "study": self.definition.name,
            **study.model_dump(include={"summary", "kind", "source", "note"}),
            "seeds": list(self.seeds),
            "points": [{"label": point.label, **asdict(point)} for point in self.points],
            "cells": [
                {"point": cell.point.number, "seed": cell.seed, "key": cell.run.key}
                for cell in self.cells
            ],
            "kept": sorted(self.kept),
            "undecided": self.undecided,
            "runs": [
                {name: getattr(run, name) for name in
                 ("key", "seed", "steps", "needs", "warnings", "command", "call", "settings")}
                for run in self.runs.values()
            ],
        }  # fmt: skip

    def lines(self) -> list[str]:
        """Return it as lines of plain text."""
        study = self.definition.study
        source = f" ({study.source})" if study.source else ""
        lines = [f"study: {self.definition.name}{source}: {study.summary}"]
        lines += [f"paper: {self.definition.paper}"] if self.definition.paper else []
        lines += [f"note: {study.note}"] if study.note else []
        axes = ", ".join(f"{axis.called} {axis.size}" for axis in study.axes)
        many = f"{len(self.points)} point{'s' * (len(self.points) != 1)}"
        lines.append(f"points: {many}" + (f" of axes {axes}" if axes else ""))
        lines.append(f"seeds: {', '.join(map(str, self.seeds))}")
        for point in self.points:
            runs = [cell.run for cell in self.cells if cell.point is point]
            if runs and not runs[0].recipe:
                words = f"cse {' '.join(runs[0].command)}" if study.command else study.call
                lines.append(f"  {point.number}. {point.name}: {words}")
            elif runs:
                steps = runs[0].steps
                many = "steps as its rounds require" if steps is None else f"{steps} steps"
                keys = " ".join(run.key for run in runs)
                lines.append(f"  {point.number}. {point.name}: {many}, {keys}")
        if study.kind == "train" or self.starts:
            twice = len(self.cells) - len({cell.run.key for cell in self.cells})
            shared = f", {twice} of them for several points" if twice else ""
            starts = f", {len(self.starts)} of them to start from" if self.starts else ""
            lines.append(f"runs: {len(self.runs)}{starts}{shared}")
        if study.tune is not None and self.undecided:
            more = self.undecided * len(set(self.seeds) - set(study.trial_seeds(self.seeds)))
            over = ", ".join(study.tune.over)
            lines.append(f"trials of {over} choose by the dev score; then {more} more runs follow")
        return lines


def plan_study(
    definition: Definition, composer: Composer, folder: StudyFolder, *, leave_out: bool = False
) -> Plan:
    """Compose every point with every seed; of trials, those with the trials' seeds.

    What trials have chosen, by the dev scores of their runs in the folder, is composed with the
    other seeds too. Points that cannot be composed are refused all at once; with ``leave_out`` only
    where there are no others. One composer for many studies reads texts once for all of them.
    """
    study, wish = definition.study, composer.wish
    points = chosen_points(definition.points, wish.points)
    if not points:
        raise CseError("no point is left", where="--points", value=" ".join(wish.points))
    wish.inputs.check(roles_of(definition))
    if study.after is not None:
        load_factory(study.after.call, where="after")
    seeds = wish.seeds_of(study.seeds)
    check_count("runs", len(points) * len(seeds), "write fewer --seeds or --points")
    first = study.trial_seeds(seeds)
    cells: list[Cell] = []
    starts: dict[str, PlannedRun] = {}
    faults: list[tuple[Point, CseError]] = []

    def add(point: Point, seed: int) -> None:
        settings = {**study.settings, **point.settings}
        if study.kind == "train":
            *before, run = composer.run(settings, seed, study.runs)
        else:
            *before, run = _call(study, seed, settings, composer)
        cells.append(Cell(point, seed, run))
        starts.update({start.key: start for start in before})

    for point in points:
        for seed in first:
            try:
                add(point, seed)
            except CseError as error:
                several = error.errors if isinstance(error, CseErrors) else (error,)
                faults += [(point, fault) for fault in several]
                break  # with another seed it is the same mistake
    errors = [_of_point(fault, definition, point, _elsewhere(fault.where, study, points, faults))
              for point, fault in faults]  # fmt: skip
    composed = {cell.point.number for cell in cells}
    others = [point for point in points if point.number in composed]
    if errors and others:
        numbers = ",".join(str(point.number) for point in others)
        hint = f"run only those: --points {numbers}"
        what = f"{len(others)} of {len(points)} points can be composed"
        errors.append(CseError(what, where=definition.name, hint=hint))
    if not (leave_out and others):
        raise_all(errors)
    left_out: dict[int, list[CseError]] = {}
    for point, fault in faults:
        left_out.setdefault(point.number, []).append(fault)
    kept: frozenset[int] = frozenset()
    undecided = 0
    if study.tune is not None:
        if not all(cell.run.selected or cell.run.untrained for cell in cells):
            what = "a dev score chooses among trials, and the run has no dev set"
            hint = 'write dev = "@dev" in [settings], and name a file with --dev'
            raise CseError(what, where="tune", hint=hint)
        kept, undecided = _kept_points(study, cells, folder)
        for point in points:
            for seed in seeds if point.number in kept else ():
                if seed not in first:
                    add(point, seed)
    return Plan(definition, points, seeds, tuple(cells), tuple(starts.values()), kept, undecided,
                left_out)  # fmt: skip


def _kept_points(
    study: Study, cells: Sequence[Cell], folder: StudyFolder
) -> tuple[frozenset[int], int]:
    """Return the numbers of the points that trials keep, and how many groups are undecided."""
    # A group is of the points that differ only on tuned axes.
    groups: dict[str, dict[int, list[str]]] = {}
    for cell in cells:
        group = groups.setdefault(cell.point.label_without(study.tuned), {})
        group.setdefault(cell.point.number, []).append(cell.run.key)
    kept = set()
    for group in groups.values():
        if len({key for keys in group.values() for key in keys}) == 1:
            kept.add(min(group))  # trained by none of the trials
            continue
        scores = {number: _dev_score(keys, folder) for number, keys in group.items()}
        ended = {number: score for number, score in scores.items() if score is not None}
        # Of equal scores the first counts; where all trials failed, none is chosen.
        best = max(ended, key=lambda number: ended[number], default=None)
        if best is not None and len(ended) == len(group) and ended[best] != _FAILED:
            kept.add(best)
    return frozenset(kept), len(groups) - len(kept)


def _dev_score(keys: Iterable[str], folder: StudyFolder) -> float | None:
    """Return the mean dev score of some runs; None where one has not ended."""
    values = []
    for key in keys:
        result = read_table(folder.run(key) / RESULT)
        if not result and not folder.beside(key, "failed.json").is_file():
            return None
        score = result.get("score")
        values.append(_FAILED if score is None else float(score))
    return sum(values) / len(values)


def _call(
    study: Study, seed: int, settings: Mapping[str, Any], composer: Composer
) -> list[PlannedRun]:
    """Return the call of some settings, behind the runs that it needs."""
    wish = composer.wish
    given = {path: filled(value, wish.inputs) for path, value in settings.items()}
    asked = {"steps": wish.steps, "rows": wish.rows, "seed": seed}
    given |= {name: value for name, value in asked.items() if value is not None}
    before: list[PlannedRun] = []
    for path, value in given.items():
        if isinstance(value, str) and value.startswith(RUN):
            texts = {name: item for name, item in settings.items() if name in ("data", "dev")}
            needed = composer.run({**texts, "model": value, "recipe": "none"}, seed, study.runs)
            before += needed[:-1]  # the last is what would start from it
            given[path] = needed[-1].recipe["model"]["name"]
    command: tuple[str, ...] = ()
    if study.command:
        # An axis goes by its name too, where it is one list of values.
        short = {axis.called: given[next(iter(axis.values))]
                 for axis in study.axes if len(axis.values) == 1}  # fmt: skip
        command = _words(study.command, {"steps": None, "rows": None, **short, **given})
        commands = composer.plugins.commands
        first = command[0] if command else ""
        if not commands.known(command):
            raise CseError("no such command", where="command", value=first,
                           hint=commands.missing(first) or None)  # fmt: skip
    elif not callable(load_factory(study.call, where="call")):
        raise CseError("is not a function", where="call", value=study.call)
    key = digest([list(command) or [study.call, given], __version__])
    needs = tuple(run.key for run in before)
    call = PlannedRun(key, seed=seed, needs=needs, settings=given, command=command, call=study.call)
    return [*before, call]


def _words(command: Sequence[str], settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the words of a command with settings in the places of their names in braces."""

    def value_of(name: str) -> Any:
        if name not in settings:
            hint = did_you_mean(name, settings)
            what = "no setting of this name"
            raise CseError(what, where="command", value=f"{{{name}}}", hint=hint)
        return settings[name]

    words: list[str] = []
    for word in command:
        alone = _BRACES.fullmatch(word)
        if alone is None:
            words.append(_BRACES.sub(lambda match: format_value(value_of(match[1])), word))
            continue
        value = value_of(alone[1])
        values = value if isinstance(value, list) else [] if value is None else [value]
        # The flag before a list is repeated, and left out before an empty one.
        flag = [words.pop()] if words and words[-1].startswith("-") else []
        for item in values:
            words += [*flag, format_value(item)]
    return tuple(words)


def _elsewhere(
    path: str | None,
    study: Study,
    points: Sequence[Point],
    faults: Sequence[tuple[Point, CseError]],
) -> str | None:
    """Say which place should have a line of ``[settings]`` that is a mistake of other places."""
    wrong = {point.number for point, fault in faults if fault.where == path}
    right = next((point for point in points if point.number not in wrong), None)
    method = next((axis for axis in study.axes if _METHOD & axis.values.keys()), None)
    if path not in study.settings or right is None or method is None:
        return None
    lines = {"label": right.labels[method.called], f'"{path}"': study.settings[path]}
    if method.labels is None:  # places that are lists become tables
        lines |= {name: right.settings[name] for name in method.values.keys() & right.settings}
    table = ", ".join(f"{name} = {json.dumps(value)}" for name, value in lines.items())
    return f"move it from [settings] to a place that has it: [[axes.places]] {table}"


def _of_point(fault: CseError, definition: Definition, point: Point, hint: str | None) -> CseError:
    where = f"{definition.name}, point {point.number} ({point.name})"
    where += f": {fault.where}" if fault.where else ""
    if not hint and fault.hint:  # settings of a study stand in its file: it has no flags for them
        hint = _SET.sub(r'in its file: "\1" = "\2"', fault.hint)
        hint = _FLAG.sub(r'in its file: \1 = ["\2"]', hint)
    return CseError(fault.what, where=where, value=fault.value, hint=hint)


def roles_of(definition: Definition, *, scored: bool = True) -> list[str]:
    """Return the roles of a study, ``@model`` and ``@sentences``, in the order of its file.

    With ``scored`` those that runs are only scored on are among them.
    """
    study = definition.study
    settings: list[Mapping[str, Any]] = [study.settings, *study.runs.values()]
    settings += [study.scores.options] if scored else []
    settings += [point.settings for point in definition.points]
    roles = [text for text in texts_of(settings) if is_role(text) and not text.startswith(RUN)]
    return list(dict.fromkeys(roles))
