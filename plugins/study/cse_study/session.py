"""A study from its definition to its table: what ``cse study`` does with one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import cached_property
from itertools import count
from pathlib import Path
from shlex import join
from typing import NamedTuple

from cse_cli.api import (
    Installed,
    check_can_load,
    check_out_folder,
    echo,
    echo_err,
    plain_table,
    say_json,
    say_table,
    warn,
)
from cse_core.files import writable_folder
from cse_core.loading import load_factory
from cse_study.definition.reading import Definition
from cse_study.execution.folder import StudyFolder
from cse_study.execution.jobs import Done, Job, Scoring, carry_out, check_scoring, jobs_of
from cse_study.planning.composing import Composer, Wish
from cse_study.planning.plan import Plan, plan_study, roles_of
from cse_study.planning.scoring import plan_scoring
from cse_study.results.rows import FILE, Row, rows_of, write_rows
from cse_study.results.table import Results


class State(NamedTuple):
    """Keys of what is finished, of runs that will be resumed, and of the others."""

    done: list[str]
    begun: list[str]
    new: list[str]

    @property
    def line(self) -> str:
        """Return it in a line."""
        return f"runs: {len(self.done)} there, {len(self.begun)} begun, {len(self.new)} new"


class Added(NamedTuple):
    """Points that the study's file lacks, with their finished runs as a plan.

    ``lines`` say where each is from, what it sets, and who repeated it.
    """

    plan: Plan
    lines: tuple[str, ...]


@dataclass
class Session:
    """A study with what was asked for beside its file.

    ``out`` is the folder of all studies; ``workers`` is how many runs are made at a time, by
    ``threads`` where they are given. ``leave_out`` leaves out points that cannot be composed,
    instead of refusing all. ``added`` are rows of others, which its file does not have.
    """

    definition: Definition
    wish: Wish
    plugins: Installed
    out: Path
    workers: int = 1
    leave_out: bool = False
    threads: Executor | None = None
    added: list[Added] = field(default_factory=list)

    @cached_property
    def folder(self) -> StudyFolder:
        """Return the folder of all studies."""
        return StudyFolder(self.out)

    @cached_property
    def _composer(self) -> Composer:
        """The composer; a plan made again when trials have ended reads nothing twice."""
        return Composer(self.wish, self.plugins)

    @cached_property
    def plan(self) -> Plan:
        """Return the plan; points that cannot be composed are refused all at once."""
        return plan_study(self.definition, self._composer, self.folder, leave_out=self.leave_out)

    @cached_property
    def scoring(self) -> Scoring | None:
        """The scoring of runs, None where there are none."""
        if self.definition.study.kind != "train":
            return None
        trained = roles_of(self.definition, scored=False)
        return plan_scoring(self.definition.study.scores, self.wish, self.plugins, trained)

    @cached_property
    def jobs(self) -> dict[str, Job]:
        """Return the jobs of the plan."""
        return jobs_of(self.plan, self.folder, self.scoring, self.workers)

    @property
    def state(self) -> State:
        """The state of the jobs: done, begun and new."""
        done = [key for key, job in self.jobs.items() if job.done]
        left = [key for key in self.jobs if key not in done]
        begun = [key for key in left if self.folder.begun(key)]
        new = [key for key in left if key not in begun]
        return State(done, begun, new)

    @property
    def _notes(self) -> tuple[str, ...]:
        return self.scoring.notes if self.scoring is not None else ()

    def show_plan(self, *, json: bool) -> None:
        """Print the plan, or refuse what a run would refuse; nothing is written."""
        check_out_folder(self.out)
        state = self.state
        check_scoring(self.scoring, self.jobs.values())
        words = self.scoring.words if self.scoring is not None else ()
        if json:
            about = {"scored_by": words, "notes": self._notes, **state._asdict()}
            say_json({**self.plan.to_json(), **about})
            return
        for line in self.plan.lines():
            echo(line)
        if words:
            echo(f"scored by: cse eval {join(words)}")
        echo(state.line)
        for note in self._notes:
            echo(f"note: {note}")

    def run(
        self, *, shown: bool = True, hear: Callable[[Done], object] | None = None
    ) -> Mapping[str, Done]:
        """Make what is not there, and return what failed, by key.

        Where trials choose, the runs with the other seeds follow when they have ended. ``hear`` is
        called with what became of each run when it ends.

        Raises:
            KeyboardInterrupt: If it was interrupted; what was made is kept.
        """
        # Trials that failed in an earlier session are tried again, and choose again.
        failed_before = [self.folder.beside(key, "failed.json")
                         for key, job in self.jobs.items() if not job.done]  # fmt: skip
        if any(file.is_file() for file in failed_before):
            for file in failed_before:
                file.unlink(missing_ok=True)
            self._plan_again()
        failed = self._run(shown, {}, hear)
        while self.plan.undecided:
            kept = self.plan.kept
            self._plan_again()
            if self.plan.kept == kept:
                warn("of some trials none was chosen: see those that failed, and the dev scores")
                break
            failed = self._run(shown, failed, hear)
        return failed

    def _plan_again(self) -> None:
        del self.plan, self.jobs

    def _run(
        self, shown: bool, failed: Mapping[str, Done], hear: Callable[[Done], object] | None
    ) -> Mapping[str, Done]:
        state = self.state
        check_scoring(self.scoring, self.jobs.values())
        for run in self.plan.runs.values():
            if run.composition is not None:
                check_can_load(run.composition, self.plugins)
        writable_folder(self.folder.runs, "--out")
        self.write_dev_sets(self.folder)
        if shown:
            notes = [f"note: {note}" for note in self._notes]
            for line in [self.plan.lines()[0], state.line, *notes]:
                echo_err(line)
            echo_err(f"what runs say: {self.folder.runs}/KEY.log")
        self.write()
        left = len(state.begun) + len(state.new) - len(failed)
        if not left:
            return failed
        names, numbers = self.plan.names, count(1)

        def ended(done: Done) -> None:
            self.write()
            if hear is not None:
                hear(done)
            if shown:
                took = f"in {timedelta(seconds=round(done.seconds))}"
                what = took if done.status == "done" else f"{done.status}: {done.line}"
                echo_err(f"{next(numbers)} of {left}: {names.get(done.key, done.key)}: {what}")

        try:
            states = carry_out(self.jobs, self.workers, ended, failed, self.threads)
        finally:
            self.write()
        return {key: done for key, done in states.items() if done.status != "done"}

    def write_dev_sets(self, folder: StudyFolder) -> None:
        """Write the pairs of data sets that choose checkpoints, where tables show their score."""
        shown = self.scoring is not None and self.scoring.dev
        names = {name for job in self.jobs.values() for name in job.dev if shown}
        for name in sorted(names & self.plugins.datasets.keys()):
            factory = self.plugins.datasets[name].factory
            write_rows(load_factory(factory, where=name)().pairs("dev"), folder.dev(name))

    def rows(self) -> list[Row]:
        """Return a row for each point and seed of the plan, behind them those that were added."""
        rows = rows_of(self.plan, self.folder, self.scoring)
        return rows + [row for added in self.added
                       for row in rows_of(added.plan, self.folder, self.scoring)]  # fmt: skip

    @property
    def shown_rows(self) -> list[Row]:
        """Return the rows of the plan with its seeds and of the points that its tables show."""
        shown = {point.number for point in self.plan.shown}
        rows = rows_of(self.plan, self.folder, self.scoring)
        return [row for row in rows if row.seed in self.plan.seeds and row.point.number in shown]

    def write(self) -> None:
        """Write the table of runs, of which one row at least has been made."""
        rows = self.rows()
        if all(row.status == "missing" for row in rows):
            return
        name, printed = self.definition.name, self.definition.block()
        table = []
        for row in rows:
            label = row.point.label_without(self.definition.study.tuned)
            cells = {score: self.definition.cell("", label, score)
                     for score in (printed.columns if printed else ())}  # fmt: skip
            paper = {f"paper:{name_}": cell and cell.value for name_, cell in cells.items()}
            table.append({**row.as_dict(name), **paper})
        write_rows(table, self.folder.study(name) / FILE)

    @property
    def results(self) -> Results:
        """The results of the runs with the seeds and points of this plan."""
        plans = [self.plan, *(added.plan for added in self.added)]
        points = [point for plan in plans for point in plan.shown]
        shown = {point.number for point in points}
        rows = [row for row in self.rows()
                if row.seed in self.plan.seeds and row.point.number in shown]  # fmt: skip
        model = Path(self.wish.inputs.models.get("", "")).name
        about = tuple(line for added in self.added for line in added.lines)
        return Results(self.definition, points, rows, self.folder, self.scoring, model, about)

    def show(self, *, json: bool) -> None:
        """Print the table of points, and what it says of the claims."""
        rows, results = self.rows(), self.results
        folder = self.folder.study(self.definition.name)
        if json:
            tables = {name: list(map(asdict, lines)) for name, lines in results.tables.items()}
            claims = [{**asdict(verdict), "claim": verdict.claim.model_dump()}
                      for verdict in results.verdicts]  # fmt: skip
            about = [{"point": row.point.label, "number": row.point.number, **row.facts,
                      **{name: getattr(row, name) for name in ("seed", "key", "status", "scores")}}
                     for row in rows]  # fmt: skip
            say_json({"study": self.definition.name, "folder": str(folder),
                      "paper": self.definition.paper, "tables": tables, "claims": claims,
                      "rows": about})  # fmt: skip
            return
        for table in results.layout():
            drawn = plain_table(table.title, table.heads)
            for cells in table.rows:
                drawn.add_row(*cells)
            say_table(drawn)
            if table.caption:
                echo(table.caption)
        for note in results.notes:
            echo(f"note: {note}")
        for name in self.definition.study.scores.shown if results.done else ():
            if name not in results.tables and "*" not in name:
                warn(f"{name}: no run has this score")
        for row in rows:
            if row.status == "failed":
                warn(f"{row.point.name}, seed {row.seed} failed: {row.facts['line']}")
        echo(f"rows: {folder / FILE}")
