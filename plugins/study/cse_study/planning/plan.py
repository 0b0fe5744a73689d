"""The plan of a study: which runs its points need, which are there, and how long the rest takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cse_cli.plugins.installed import OWN_COMMANDS
from cse_core import __version__
from cse_core.errors import CseError, CseErrors, raise_all
from cse_study.definition.points import Point, chosen_points, ranges
from cse_study.definition.reading import Definition, texts_of
from cse_study.execution.folder import StudyFolder
from cse_study.planning.calls import check_call, words_of
from cse_study.planning.composing import Cell, Composer, PlannedRun
from cse_study.planning.inputs import RUN, Inputs, filled, is_role
from cse_study.planning.keys import digest
from cse_study.planning.tuning import check_selected, groups_of, kept_points, trial_seeds

OWN = tuple(name.split()[0] for name in OWN_COMMANDS)
"""First words of the command line's own commands."""
_SET = re.compile(r"--set ([\w.]+)=(\w+)")


@dataclass(frozen=True)
class Wish:
    """What was asked for beside the study's own file.

    Attributes:
        seeds: How many seeds, or the seeds themselves; None for those of the file.
        points: Which points, as ``--points`` says it.
        steps: Steps of every run.
        rows: Rows of the texts.
        inputs: What stands for roles.
    """

    seeds: int | Sequence[int] | None = None
    points: Sequence[str] = ()
    steps: int | None = None
    rows: int | None = None
    inputs: Inputs = field(default_factory=Inputs)

    def seeds_of(self, own: Sequence[int]) -> tuple[int, ...]:
        """Return the seeds of a study: its own, and then those that follow its largest one."""
        if self.seeds is None:
            return tuple(own)
        if not isinstance(self.seeds, int):
            return tuple(self.seeds)
        more = range(max(own) + 1, max(own) + 1 + self.seeds)
        return (*own, *more)[: self.seeds]


@dataclass(frozen=True)
class CallCell:
    """A point of a study that trains nothing itself.

    Attributes:
        key: A digest of the call.
        settings: With names in the places of roles, and ``@run:KEY`` of runs to start from.
        command: Words of ``cse``, the same places in them; empty for a function.
        starts: Keys of the runs that it needs.
    """

    point: Point
    seed: int
    key: str
    settings: Mapping[str, Any]
    command: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What a study will do.

    Attributes:
        definition: The study.
        points: The chosen points.
        seeds: The seeds.
        cells: Each point with each seed.
        calls: The same of a study with commands or a function.
        starts: Runs that others start from, before those that need them.
        kept: Numbers of the points that trials have chosen; empty in a study without trials.
        undecided: Groups of points of which the trials have not ended.
    """

    definition: Definition
    points: tuple[Point, ...]
    seeds: tuple[int, ...]
    cells: tuple[Cell, ...] = ()
    calls: tuple[CallCell, ...] = ()
    starts: tuple[PlannedRun, ...] = ()
    kept: frozenset[int] = frozenset()
    undecided: int = 0

    @property
    def shown(self) -> tuple[Point, ...]:
        """Return the points of the table: those that trials have chosen, else all."""
        return tuple(point for point in self.points if point.number in self.kept) or self.points

    @property
    def runs(self) -> dict[str, PlannedRun]:
        """Return each run once by its key, those first that others start from."""
        found = {run.key: run for run in self.starts}
        for cell in self.cells:
            found.setdefault(cell.run.key, cell.run)
        return found

    @property
    def scored(self) -> frozenset[str]:
        """Return the keys of the runs that are scored: of trials those of the chosen points."""
        tuned = self.definition.study.tune is not None
        return frozenset(
            cell.run.key for cell in self.cells if not tuned or cell.point.number in self.kept
        )

    @property
    def shared(self) -> int:
        """Return how many cells have the run of an earlier one."""
        return len(self.cells) - len({cell.run.key for cell in self.cells})


def plan_study(
    definition: Definition,
    wish: Wish,
    composer: Composer | None = None,
    folder: StudyFolder | None = None,
) -> Plan:
    """Compose every point with every seed; of trials, those with the trials' seeds.

    What the trials in the folder have chosen is composed with the other seeds too.

    Args:
        definition: The study.
        wish: What was asked for beside its file.
        composer: What composes; one for many studies reads texts once for all of them.
        folder: Where runs lie, whose dev scores choose among trials.

    Raises:
        CseError: If a point cannot be composed, or nothing is left of the points: all such at once.
    """
    study = definition.study
    points = chosen_points(definition.points, wish.points)
    if not points:
        raise CseError("no point is left", where="--points", value=" ".join(wish.points))
    wish.inputs.check(roles_of(definition))
    seeds = wish.seeds_of(study.seeds)
    composer = composer or Composer(wish.inputs, wish.steps, wish.rows)
    first = seeds if study.tune is None else trial_seeds(study, seeds)
    cells: list[Cell] = []
    calls: list[CallCell] = []
    starts: dict[str, PlannedRun] = {}
    errors: list[CseError] = []

    def add(point: Point, seed: int) -> None:
        settings = {**study.settings, **point.settings}
        if study.kind == "train":
            *before, run = composer.run(settings, seed, study.runs)
            cells.append(Cell(point, seed, run))
        else:
            call, before = _call(definition, point, seed, settings, wish, composer)
            calls.append(call)
        starts.update({start.key: start for start in before})

    for point in points:
        for seed in first:
            try:
                add(point, seed)
            except CseError as error:
                errors += _of_point(error, definition, point)
                break  # with another seed it is the same mistake
    composed = {cell.point.number for cell in cells} | {call.point.number for call in calls}
    others = [point for point in points if point.number in composed]
    if errors and others:
        hint = f"run those alone: --points {ranges(others)}"
        what = f"{len(others)} of {len(points)} points can be composed"
        errors.append(CseError(what, where=definition.name, hint=hint))
    raise_all(errors)
    kept: frozenset[int] = frozenset()
    undecided = 0
    if study.tune is not None:
        for cell in cells:
            check_selected(cell.run)
        kept = frozenset() if folder is None else kept_points(study, cells, folder)
        undecided = len(groups_of(study, points)) - len(kept)
        for point in points:
            for seed in seeds if point.number in kept else ():
                if seed not in first:
                    add(point, seed)
    return Plan(
        definition, points, seeds, tuple(cells), tuple(calls), tuple(starts.values()), kept,
        undecided,
    )  # fmt: skip


def _call(
    definition: Definition,
    point: Point,
    seed: int,
    settings: Mapping[str, Any],
    wish: Wish,
    composer: Composer,
) -> tuple[CallCell, list[PlannedRun]]:
    """Return the call of a point, and the runs that it needs."""
    study = definition.study
    given = {path: filled(value, wish.inputs) for path, value in settings.items()}
    for name, asked in (("steps", wish.steps), ("rows", wish.rows)):
        if asked is not None:
            given[name] = asked
    given["seed"] = seed
    before: list[PlannedRun] = []
    for path, value in given.items():
        if isinstance(value, str) and value.startswith(RUN):
            texts = {name: each for name, each in settings.items() if name in ("data", "dev")}
            needed = composer.run({**texts, "model": value, "recipe": "none"}, seed, study.runs)
            before += needed[:-1]  # the last is what would start from it
            given[path] = f"{RUN}{needed[-2].key}"
    where = "command" if study.command else "call"
    command: tuple[str, ...] = ()
    if study.command:
        # An axis goes by its name too, where it is one list of values.
        short = {axis.called: given[next(iter(axis.values))]
                 for axis in study.axes if len(axis.values) == 1}  # fmt: skip
        command = words_of(study.command, {"steps": None, "rows": None, **short, **given}, where)
        commands = composer.plugins([]).commands
        first = command[0] if command else ""
        if not (first in OWN or commands.chosen(list(command)) is not None):
            raise CseError("no such command", where=where, value=first,
                           hint=commands.missing(first) or None)  # fmt: skip
    else:
        check_call(study.call, where)
    key = digest([list(command) or [study.call, given], __version__])
    starts = tuple(run.key for run in before)
    return CallCell(point, seed, key, given, command, starts), before


def _of_point(error: CseError, definition: Definition, point: Point) -> Iterator[CseError]:
    mistakes = error.errors if isinstance(error, CseErrors) else (error,)
    for each in mistakes:
        where = f"{definition.name}, point {point.number} ({point.name})"
        where += f": {each.where}" if each.where else ""
        # Settings of a study stand in its file: it has no --set.
        hint = each.hint and _SET.sub(r'in its file: "\1" = "\2"', each.hint)
        yield CseError(each.what, where=where, value=each.value, hint=hint)


def roles_of(definition: Definition, *, scored: bool = True) -> list[str]:
    """Return the roles of a study, ``@model`` and ``@sentences``, in the order of its file.

    Args:
        definition: The study.
        scored: Also those that runs are only scored on.
    """
    study = definition.study
    settings: list[Mapping[str, Any]] = [study.settings, *study.runs.values()]
    settings += [study.scores.options] if scored else []
    settings += [point.settings for point in definition.points]
    found = [text for text in texts_of(settings) if is_role(text) and not text.startswith(RUN)]
    return list(dict.fromkeys(found))
