"""A study from its definition to its table: what ``cse study`` does with one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse_cli.machine.out_files import check_out_folder
from cse_cli.plugins.installed import Installed
from cse_cli.terminal.console import echo, echo_err, plain_table, say_json, say_table, warn
from cse_core.runtime.atomic_files import atomic_write, disk_errors, writable_folder
from cse_study.definition.reading import Definition
from cse_study.execution.executors import executor_of, is_here, threads_of
from cse_study.execution.folder import StudyFolder, write_json
from cse_study.execution.jobs import Done, Scoring, check_scoring
from cse_study.execution.packing import pack, unpack
from cse_study.execution.progress import Shown, names_of, watching
from cse_study.execution.running import Work, carry_out, work_of
from cse_study.planning.composing import Composer, check_models
from cse_study.planning.durations import State, in_words, state_of
from cse_study.planning.keys import digest
from cse_study.planning.plan import Plan, Wish, plan_study, roles_of
from cse_study.planning.report import plan_json, plan_lines
from cse_study.planning.scoring import PlannedScoring, ScoreWish, plan_scoring
from cse_study.results.claims import Verdict, verdicts_of
from cse_study.results.layout import claims_table, score_tables
from cse_study.results.markdown import page_of
from cse_study.results.rows import Row, merged, read_rows, rows_of, write_rows
from cse_study.results.table import Line, paper_number, tables_of
from cse_study.results.text_table import Table

if TYPE_CHECKING:
    from cse_study.pages.study_results import Results

PLAN = "plan.json"
"""What the rows of a study belong to."""


@dataclass
class Session:
    """A study with what was asked for beside its file.

    Attributes:
        definition: The study.
        wish: Seeds, points, steps, rows and names for roles.
        score_wish: Sets in place of the study's.
        plugins: The installed plugins.
        out: Folder of all studies.
        executor: What makes the runs.
        workers: How many at a time.
        lean: Whether the checkpoints of finished runs are deleted.
    """

    definition: Definition
    wish: Wish
    score_wish: ScoreWish
    plugins: Installed
    out: Path
    executor: str = "local"
    workers: int | None = None
    lean: bool = False

    @cached_property
    def folder(self) -> StudyFolder:
        """Return the folder of all studies."""
        return StudyFolder(self.out)

    @cached_property
    def plan(self) -> Plan:
        """Return the plan; every point of it can be composed.

        Raises:
            CseError: If one cannot: all such at once.
        """
        return plan_study(self.definition, self.wish, self._composer, self.folder)

    @cached_property
    def _composer(self) -> Composer:
        """Return what composes; a plan made again when trials have ended reads nothing twice."""
        return Composer(self.wish.inputs, self.wish.steps, self.wish.rows)

    @cached_property
    def planned_scoring(self) -> PlannedScoring | None:
        """Return how runs are scored, None where there are none."""
        if not self.plan.cells:
            return None
        scores = self.definition.study.scores
        trained = roles_of(self.definition, scored=False)
        return plan_scoring(scores, self.score_wish, self.wish.inputs, self.plugins, trained)

    @property
    def scoring(self) -> Scoring | None:
        """Return how runs are scored."""
        return self.planned_scoring.scoring if self.planned_scoring is not None else None

    @cached_property
    def work(self) -> Work:
        """Return the jobs of the plan."""
        threads = threads_of(self.executor, self.workers)
        return work_of(self.plan, self.folder, self.scoring, threads, lean=self.lean)

    def state(self) -> State:
        """Return what is there already, and how long the rest takes."""
        return state_of(self.plan, self.work, self.folder, self.scoring)

    def show_plan(self, *, json: bool) -> None:
        """Print the plan; nothing is written.

        Raises:
            CseError: If a point cannot be composed, runs could not be scored, or the folder could
                not be made.
        """
        check_out_folder(self.out)
        state, notes = self.state(), self._notes()
        check_scoring(self.scoring, self.work.jobs.values())
        if json:
            say_json(
                {
                    **plan_json(self.plan),
                    "scored_by": list(self.scoring.words) if self.scoring else [],
                    "notes": notes,
                    "done": list(state.done),
                    "begun": list(state.begun),
                    "new": list(state.new),
                    "seconds": state.seconds,
                }
            )
            return
        for line in plan_lines(self.plan):
            echo(line)
        if self.scoring is not None:
            echo(f"scored by: cse eval {' '.join(self.scoring.words)}")
        echo(_left(state))
        for note in notes:
            echo(f"note: {note}")

    def run(self, *, shown: bool = True) -> Mapping[str, Done]:
        """Make what is not there, and return what failed, by key.

        Where trials choose, the runs with the other seeds follow when they have ended.

        Raises:
            CseError: If a point cannot be composed, or the folder cannot be written to.
            KeyboardInterrupt: If it was interrupted; what was made is kept.
        """
        self._forget_failures()
        failed = self._run(shown, {})
        while self.plan.undecided:
            kept = self.plan.kept
            del self.plan, self.work
            if self.plan.kept == kept:
                warn("of some trials none was chosen: see those that failed, and the dev scores")
                break
            failed = self._run(shown, failed)
        return failed

    def _forget_failures(self) -> None:
        """Forget what failed in an earlier session: trials that are tried again choose again."""
        keys = [key for key, job in self.work.jobs.items() if not job.done]
        places = [self.folder.beside(key, "failed.json") for key in keys]
        for place in (failed := [each for each in places if each.is_file()]):
            place.unlink(missing_ok=True)
        if failed:
            del self.plan, self.work

    def _run(self, shown: bool, failed: Mapping[str, Done]) -> Mapping[str, Done]:
        state = self.state()
        check_scoring(self.scoring, self.work.jobs.values())
        if is_here(self.executor):
            check_models(self.plan.runs[key] for key in state.new if key in self.plan.runs)
        writable_folder(self.folder.runs, "--out")
        if shown:
            for line in plan_lines(self.plan)[:1]:
                echo_err(line)
            echo_err(_left(state))
            for note in self._notes():
                echo_err(f"note: {note}")
            self._warn_of_plans(state)
        self.write()
        left = len(state.begun) + len(state.new) - len(failed)
        if not left:
            return failed
        watcher = Shown(self.plan, self.folder, left, self.write, shown)
        logs = self.folder.runs / ".submitit"
        try:
            with executor_of(self.executor, self.workers, logs) as executor, watching(watcher):
                ended = carry_out(self.work, executor, watcher, failed)
        finally:
            self.write()
        return {key: done for key, done in ended.items() if done.status != "done"}

    def _warn_of_plans(self, state: State) -> None:
        """Warn once of what plans of new runs warn of."""
        names = names_of(self.plan)
        seen: dict[str, list[str]] = {}
        for key in state.new:
            for warning in self.plan.runs[key].warnings if key in self.plan.runs else ():
                seen.setdefault(warning, []).append(names.get(key, key))
        for warning, points in seen.items():
            more = f" and {len(points) - 1} more" if len(points) > 1 else ""
            warn(f"{points[0]}{more}: {warning}")

    def _notes(self) -> list[str]:
        return list(self.planned_scoring.notes) if self.planned_scoring is not None else []

    def rows(self) -> list[Row]:
        """Return a row for each point and seed of the plan."""
        return rows_of(self.plan, self.folder, self.scoring)

    def write(self) -> None:
        """Write the table of runs; rows of other points and seeds with the same settings stay.

        While nothing has been made, a table of runs with other settings stays too.
        """
        name = self.definition.name
        folder = self.folder.study(name)
        found = self.rows()
        if all(row.status == "missing" for row in found):
            return
        rows = [row.as_dict(name) | self._paper(row) for row in found]
        base = self._base()
        words = list(self.scoring.words) if self.scoring else []
        with self.folder.locked(f"table.{digest(name)}", lambda: None):
            write_rows(merged(rows, read_rows(folder, base)), folder, base)
            write_json(folder / PLAN, {**plan_json(self.plan), "scored_by": words})

    def _base(self) -> str:
        """Return a digest of what all rows of a table have in common."""
        wish, study = self.wish, self.definition.study.model_dump()
        kept = {
            name: study[name] for name in ("kind", "settings", "axes", "runs", "command", "call")
        }
        inputs = [dict(wish.inputs.models), dict(wish.inputs.data), list(wish.inputs.dev)]
        scoring = self.scoring.key if self.scoring else ""
        return digest([kept, wish.steps, wish.rows, inputs, scoring])

    def _paper(self, row: Row) -> dict[str, Any]:
        numbers = self.definition.study.paper.numbers
        if isinstance(numbers, Mapping):
            return {f"paper:{name}": paper_number(numbers, name, 0, row.point) for name in numbers}
        return {"paper": paper_number(numbers, "", 0, row.point)}

    def tables(self) -> dict[str, list[Line]]:
        """Return the lines of each shown score."""
        model = Path(self.wish.inputs.models.get("", "")).name
        points = self.plan.shown
        rows = [row for row in self.rows() if row.seed in self.plan.seeds]
        return tables_of(self.definition, points, rows, self.folder, self.scoring, model)

    def verdicts(self) -> list[Verdict]:
        """Return what the runs say of the claims of the study."""
        rows = [row for row in self.rows() if row.seed in self.plan.seeds]
        return verdicts_of(self.definition, self.plan.shown, rows, self.folder, self.scoring)

    def _laid_out(self, tables: Mapping[str, list[Line]]) -> list[Table]:
        """Return the tables of scores and of claims as text."""
        claims = claims_table(self.verdicts())
        return [*score_tables(self.definition, tables), *([claims] if claims else [])]

    def write_markdown(self, file: Path, command: str) -> None:
        """Write figures, tables, claims and what is behind them as a page, figures beside it.

        Raises:
            CseError: If it cannot be written, or what draws is not installed.
        """
        from cse_study.pages.drawing import alone
        from cse_study.pages.study_page import study_pictures

        drawn = study_pictures(self._results())
        pictures = {f"{file.stem}-{number}.svg": each for number, each in enumerate(drawn, 1)}
        titles = {name: each.title for name, each in pictures.items()}
        page = page_of(self.definition, self._laid_out(self.tables()), self.rows(), command, titles)
        with disk_errors(file):
            for name, each in pictures.items():
                atomic_write(file.with_name(name), alone(each))
            atomic_write(file, page)

    def pack(self, file: Path) -> None:
        """Write what the finished runs of the plan say into one file, without their models.

        Raises:
            CseError: If it cannot be written.
        """
        count = pack(self.folder, self.plan.runs, file)
        echo_err(f"{count} of {len(self.plan.runs)} runs are packed: {file}")

    def unpack(self, file: Path) -> None:
        """Take the runs of such a file, before the plan is made.

        Raises:
            CseError: If it is a file of something else, or the folder cannot be written to.
        """
        writable_folder(self.folder.runs, "--out")
        taken, count = unpack(self.folder, file)
        echo_err(f"{taken} of {count} runs of {file} are new here")

    def write_page(self, path: Path) -> None:
        """Write the page with the table and the figures.

        Raises:
            CseError: If it cannot be written, or what makes it is not installed.
        """
        from cse_study.pages.study_page import study_page

        study_page(self._results()).write(path)

    def _results(self) -> Results:
        """Return what figures are drawn from: the runs of this plan's seeds and points."""
        from cse_study.pages.study_results import Results

        plan, scoring = self.plan, self.scoring
        shown = {point.number for point in plan.shown}
        rows = [row for row in self.rows() if row.seed in plan.seeds and row.point.number in shown]
        return Results(
            self.definition, plan.shown, rows, self.tables(), self.folder, scoring, self.verdicts()
        )

    def show(self, *, json: bool) -> None:
        """Print the table of points, and what it says of the claims."""
        rows = self.rows()
        folder = self.folder.study(self.definition.name)
        if json:
            say_json(
                {
                    "study": self.definition.name,
                    "folder": str(folder),
                    "paper": self.definition.paper,
                    "tables": {name: [line.to_json() for line in lines]
                               for name, lines in self.tables().items()},
                    "claims": [verdict.to_json() for verdict in self.verdicts()],
                    "rows": [
                        {"point": row.point.label, "number": row.point.number, "seed": row.seed,
                         "key": row.key, "status": row.status, "run": row.facts.get("run"),
                         "line": row.facts.get("line") or None, "scores": dict(row.scores)}
                        for row in rows
                    ],
                }
            )  # fmt: skip
            return
        tables = self.tables()
        for table in self._laid_out(tables):
            drawn = plain_table(table.title, table.heads)
            for cells in table.rows:
                drawn.add_row(*cells)
            say_table(drawn)
            if table.caption:
                echo(table.caption)
        if any(row.status == "done" for row in rows):
            for name in self.definition.study.scores.columns:
                if name not in tables and name.strip() and "*" not in name:
                    warn(f"{name}: no run has this score")
        for row in rows:
            if row.status == "failed":
                warn(f"{row.point.name}, seed {row.seed} failed: {row.facts['line']}")
        echo(f"rows: {folder}/results.parquet, {folder}/results.csv")


def _left(state: State) -> str:
    """Return what is there and what is left to do, in a line."""
    words = [f"{len(state.done)} there", f"{len(state.begun)} begun", f"{len(state.new)} new"]
    if not state.begun and not state.new:
        return f"runs: {words[0]}; nothing is left to do"
    if state.seconds is None:
        return f"runs: {', '.join(words)}; how long they take shows behind the first one"
    return f"runs: {', '.join(words)}; about {in_words(state.seconds)} in one process"
