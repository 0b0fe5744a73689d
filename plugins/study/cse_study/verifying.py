"""Rows of a pack repeated on this machine, and compared with what the pack says."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from cse_cli.api import Installed
from cse_core.errors import CseError
from cse_study.definition.reading import Definition, chosen_points
from cse_study.execution.folder import StudyFolder
from cse_study.execution.jobs import Done, Job, carry_out, check_scoring, jobs_of, machine
from cse_study.execution.packs import Mark, Pack, PackedPoint, facts_of, take
from cse_study.planning.composing import Wish
from cse_study.planning.scoring import showing
from cse_study.provenance import WHERE, inputs_of
from cse_study.results.rows import ANY_TEST, Row, rows_of
from cse_study.session import Session

TOLERANCE = {"fp32": 0.1}
"""Points by which scores may differ on another machine, by number format; else ``_COARSE``."""
_COARSE = 0.5
_DECIMALS = 4
_MACHINE = ("commit", "processor", "system")
_RUN = ("device", "precision", "threads", "processes")


@dataclass(frozen=True)
class Verified:
    """A row that is repeated.

    Attributes:
        verdict: ``planned``, and then ``equal`` to the last digit, ``near`` if the scores that the
            study shows are within the format's tolerance, ``other``, or ``failed``.
        largest: The largest difference of a score that the study shows, in points.
        score: The score that it is of.
        apart: The differences of all numbers that are not equal.
        parted: Where both first part, and what was not the same; empty where nothing parts.
        seconds: What it took where the pack was made.
    """

    point: str
    seed: int
    key: str
    verdict: Literal["planned", "equal", "near", "other", "failed"] = "planned"
    largest: float = 0.0
    score: str = ""
    parted: str = ""
    seconds: float = 0.0
    apart: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """Rows of a pack that were chosen, by ``--points``, ``--seeds``, and how many at most."""

    points: Sequence[str] = ()
    seeds: Sequence[int] | None = None
    rows: int | None = None


def listed(pack: Pack, definition: Definition, choice: Choice) -> list[Verified]:
    """Return the rows of a pack that were chosen; nothing has to be there for it.

    Raises:
        CseError: There are none.
    """
    head = pack.named(WHERE)
    names = {point.name for point in chosen_points(definition.points, choice.points)}
    seeds = choice.seeds
    rows: dict[str, PackedPoint] = {}  # an untrained model is one run, the same with every seed
    for row in head.rows:
        if row.name in names and (seeds is None or row.seed in seeds):
            rows.setdefault(row.key, row)
    if not rows:
        hint = "its rows are listed by --dry-run without --points and --seeds"
        what = "has no row of these points and seeds"
        raise CseError(what, where=WHERE, value=str(pack.file), hint=hint)
    seconds = {run.key: run.seconds(head.scoring) for run in pack.runs}
    return [Verified(row.name, row.seed, row.key, seconds=seconds.get(row.key, 0.0))
            for row in [*rows.values()][: choice.rows]]  # fmt: skip


class Repeat:
    """Rows of a pack with all that repeats them; a context whose end removes what it made.

    ``planned`` are rows that :func:`listed` returned; ``there`` has the files of the pack by their
    checksum.

    Attributes:
        stopped: Whether an interrupt left rows out.

    Raises:
        CseError: A row is another run here.
    """

    stopped = False

    def __init__(
        self,
        pack: Pack,
        definition: Definition,
        plugins: Installed,
        planned: Iterable[Verified],
        there: Mapping[str, Path],
        workers: int = 1,
    ) -> None:
        self.pack, self.workers = pack, workers
        self._temporary = TemporaryDirectory(prefix="cse-verify-")
        place = Path(self._temporary.name)
        try:
            self.planned = {row.key: row for row in planned}
            shown = {(row.point, row.seed) for row in self.planned.values()}
            chosen = [row for row in pack.named(WHERE).rows if (row.name, row.seed) in shown]
            wish = _wish(pack, definition, chosen, there, place / "inputs")
            definition = showing(definition, wish.inputs)
            self.known = Session(definition, wish, plugins, place / "known", workers)
            take(self.known.folder, pack)
            self.again = StudyFolder(place / "again")
            self.rows = self._rows({row.key: row for row in chosen})
        except BaseException:
            self._temporary.cleanup()
            raise

    def __enter__(self) -> Repeat:
        return self

    def __exit__(self, *_: object) -> None:
        self._temporary.cleanup()

    def _rows(self, chosen: Mapping[str, PackedPoint]) -> dict[str, Row]:
        rows: dict[str, Row] = {}
        for row in self.known.shown_rows:
            if row.status == "done":
                rows.setdefault(row.key, row)
        if lost := [point for key, point in chosen.items() if key not in rows]:
            what = f"{lost[0].name}, seed {lost[0].seed}, is another run here"
            what += f", and so are {len(lost) - 1} more rows" if len(lost) > 1 else ""
            hint = "the study, a plugin or a default has changed: use the commit of the pack"
            raise CseError(what, where=WHERE, value=str(self.pack.file), hint=hint)
        return {key: rows[key] for key in chosen}

    def carry_out(self, hear: Callable[[Row, Done], object]) -> list[Verified]:
        """Make the rows, and say of each what came of it; of an interrupt, of those that ended.

        The rates that trials chose are those of the pack; the trials are not made again. Rows have
        as many threads as in the pack, on which the last bits depend, and its number format.
        """
        known, rows = self.known, self.rows
        self.again.runs.mkdir(parents=True)
        known.write_dev_sets(self.again)
        ended: dict[str, Done] = {}

        def heard(done: Done) -> None:
            ended[done.key] = done
            needed = any(done.key in run.needs for run in known.plan.runs.values())
            if not needed and known.definition.study.after is None:  # which may read the model
                shutil.rmtree(self.again.run(done.key) / "model", ignore_errors=True)
            if done.key in rows:
                hear(rows[done.key], done)

        try:
            for threads in dict.fromkeys(row.facts.get("threads") for row in rows.values()):
                jobs = self._jobs(threads)
                check_scoring(known.scoring, jobs.values())
                carry_out(jobs, self.workers, heard)
        except KeyboardInterrupt:
            self.stopped = True
        now = {row.key: row for row in rows_of(known.plan, self.again, known.scoring)}
        made = []
        for row in rows.values():
            about = self.planned[row.key]
            done = ended.get(row.key, Done(row.key, "stopped"))
            if done.status == "done":
                facts = [facts_of(folder, row.key) for folder in (known.folder, self.again)]
                shown = known.definition.study.scores.shown or [ANY_TEST]
                made.append(_compared(about, row, now[row.key], shown, facts[0], facts[1],
                                      self._tolerance(facts[0])))  # fmt: skip
            elif not self.stopped:
                made.append(replace(about, verdict="failed", parted=done.line))
        return made

    def _tolerance(self, facts: Mapping[str, Any]) -> float:
        """Return by how many points scores may differ: of the format of training, else of eval."""
        words = [*self.pack.named(WHERE).scored_by.split(), "--precision", "fp32"]
        scored = words[words.index("--precision") + 1]
        return TOLERANCE.get(facts.get("run", {}).get("precision") or scored, _COARSE)

    def _jobs(self, threads: int | None) -> dict[str, Job]:
        """Return the jobs of the rows with so many threads, and of those that they start from."""
        known = self.known
        jobs = jobs_of(known.plan, self.again, known.scoring, self.workers)
        todo = [key for key, row in self.rows.items() if row.facts.get("threads") == threads]
        wanted = dict.fromkeys(todo)
        while todo:
            needs = [key for key in jobs[todo.pop()].run.needs if key not in wanted]
            wanted |= dict.fromkeys(needs)
            todo += needs
        return {
            key: replace(self._in_format(jobs[key]), threads=threads or jobs[key].threads)
            for key in wanted
        }

    def _in_format(self, job: Job) -> Job:
        """Let a run have the number format of the pack where its settings leave that open."""
        train = job.run.recipe.get("train", {})
        then = facts_of(self.known.folder, job.key).get("run", {}).get("precision")
        if not then or train.get("precision", "auto") != "auto":
            return job
        recipe = {**job.run.recipe, "train": {**train, "precision": then}}
        return replace(job, run=replace(job.run, recipe=recipe))


def _wish(
    pack: Pack, definition: Definition, rows: Sequence[PackedPoint], there: Mapping[str, Path],
    place: Path,
) -> Wish:  # fmt: skip
    """Return what plans some rows, and of a study with trials these too."""
    study, head = definition.study, pack.named(WHERE)
    names = {row.name for row in rows}  # of trials only what they chose
    points = [str(p.number) for p in definition.points if p.name in names]
    trials = () if study.tune is None else study.trial_seeds(head.seeds)
    inputs, pairs, sets = inputs_of(head, there, place)
    return Wish(
        tuple(dict.fromkeys([*trials, *(row.seed for row in rows)])), [",".join(points)],
        head.steps, head.limit, inputs, head.suites, pairs, sets,
    )  # fmt: skip


def differing(pack: Pack, keys: Iterable[str]) -> list[str]:
    """Say what of the machine and of the packages is another than of some rows of a pack."""
    keys = {*keys}
    gpu = {} if Path("/dev/nvidiactl").exists() else {"device": "cpu"}
    here: dict[str, Any] = {**machine(), "run": gpu}
    lines: dict[str, None] = {}
    for run in pack.runs:
        if run.key in keys:
            now = {name: _version(name) for name in run.facts.get("versions", {})}
            device = {k: v for k, v in run.facts.get("run", {}).items() if k in gpu}
            before = {**run.facts, "run": device}
            lines |= dict.fromkeys(_changes(before, {**here, "versions": now}))
    return [*lines]


def _version(name: str) -> str:
    try:
        return version(name)
    except (PackageNotFoundError, ValueError):
        return "not installed"


def marked(pack: Pack, made: Iterable[Verified]) -> list[dict[str, Any]]:
    """Return the lines of a pack, those of repeated rows with a mark of what came of them."""
    here = machine()
    about = {name: str(here[name]) for name in ("date", "processor", "commit")}
    marks = {
        row.key: Mark(verdict=row.verdict, largest=row.largest, **about).model_dump()
        for row in made if row.verdict in ("equal", "near", "other")
    }  # fmt: skip
    return [{**line, "verified": marks[line["key"]]} if line["key"] in marks else line
            for line in pack.raw]  # fmt: skip


def _compared(
    about: Verified,
    before: Row,
    now: Row,
    shown: Sequence[str],
    facts: Mapping[str, Any],
    facts_now: Mapping[str, Any],
    most: float,
) -> Verified:
    lost = sorted(before.scores.keys() - now.scores.keys())
    apart = _apart(before.scores, now.scores)
    if not lost and not apart:
        return replace(about, verdict="equal")
    values = [{name: value.value for name in shown if (value := row.shown(name)) is not None}
              for row in (before, now)]  # fmt: skip
    points = _apart(*values) if all(values) else apart
    score = max(sorted(points), key=points.__getitem__, default="")
    parts = [f"{lost[0]} is not there now"] if lost else []
    parts += [*_first_step(facts, facts_now), *_changes(facts, facts_now)]
    near = not lost and "chosen_step" not in apart and points.get(score, 0.0) <= most
    return replace(about, verdict="near" if near else "other", largest=points.get(score, 0.0),
                   score=score, apart=apart, parted="; ".join(parts))  # fmt: skip


def _apart(before: Mapping[str, float], now: Mapping[str, float]) -> dict[str, float]:
    """Return the differences of numbers that are in both; scores have four decimals."""
    apart = {name: abs(round(now[name], _DECIMALS) - round(before[name], _DECIMALS))
             for name in sorted(before.keys() & now.keys())}  # fmt: skip
    return {name: round(value, _DECIMALS) for name, value in apart.items() if value}


def _first_step(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Name the first dev score that differs, where the pack keeps them."""
    pairs = zip(before.get("evaluations", ()), now.get("evaluations", ()), strict=False)
    for one, other in pairs:
        if len(one) == 3 and one[2] != other[2]:
            number, step, value = one
            return [f"round {number}, step {step}: dev {value:.4f} then, {other[2]:.4f} now"]
    return []


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Say what of the machine, the run and the packages is another."""
    changes = []
    for names, one, other in (
        (_MACHINE, before, now),
        (_RUN, before.get("run", {}), now.get("run", {})),
        (before.get("versions", {}), before.get("versions", {}), now.get("versions", {})),
    ):
        changes += [
            f"{name}: {one[name]} then, {other.get(name)} now"
            for name in names
            if name in one and one[name] != other.get(name)
        ]
    return changes
