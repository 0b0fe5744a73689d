"""Carrying a plan out: what is not there is made, those runs first that others start from."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from types import MappingProxyType
from typing import Any

from cse_cli.terminal.console import echo_err
from cse_study.execution.executors import Submit
from cse_study.execution.folder import StudyFolder
from cse_study.execution.jobs import Done, Job, Scoring, make, stop_children, stopping
from cse_study.planning.inputs import RUN
from cse_study.planning.plan import Plan

MAX_TRIES = 4
"""How often a run is given to a worker, when workers end before it does."""
_POLL_SECONDS = 0.5
_SECONDS_BETWEEN_LINES = 30.0


def jobs_of(
    plan: Plan,
    folder: StudyFolder,
    scoring: Scoring | None,
    threads: int | None = None,
    *,
    drop_checkpoints: bool = False,
) -> dict[str, Job]:
    """Return the jobs of a plan by key.

    Checkpoints of runs that commands or functions look into are never dropped.
    """
    where, jobs = str(folder.path.absolute()), {}
    looked_into = {key for call in plan.calls for key in call.starts}
    for key, run in plan.runs.items():
        jobs[key] = Job(
            folder=where,
            key=key,
            needs=() if run.start is None else (run.start,),
            recipe=run.recipe,
            untrained=run.untrained,
            scoring=scoring if key in plan.scored else None,
            without=run.without,
            threads=threads,
            drop_checkpoints=drop_checkpoints and key not in looked_into,
        )
    for call in plan.calls:
        jobs[call.key] = Job(
            folder=where,
            key=call.key,
            needs=call.starts,
            command=tuple(_placed(word, folder) for word in call.command),
            call="" if call.command else plan.definition.study.call,
            settings={name: _placed(value, folder) for name, value in call.settings.items()},
            threads=threads,
        )
    return jobs


def _placed(value: Any, folder: StudyFolder) -> Any:
    """Return a value with the folder of a run in the place of its key."""
    if isinstance(value, str) and value.startswith(RUN):
        return str(folder.run(value.removeprefix(RUN)).absolute())
    return value


def carry_out(
    jobs: Mapping[str, Job],
    submit: Submit,
    progress: Progress,
    before: Mapping[str, Done] = MappingProxyType({}),
    *,
    function: Callable[[Job], Done] = make,
) -> Mapping[str, Done]:
    """Make every job that is not there, and return what became of those that were given out.

    A job whose worker ends before it does, or is asked to stop, is given to another one, up to
    ``MAX_TRIES`` times. A job that needs one that failed is not begun.

    Args:
        jobs: The jobs by key.
        submit: Gives one to a worker.
        progress: Is called as they begin and end, and now and then.
        before: What became of jobs in an earlier pass; those that failed are not tried again.
        function: What makes one.

    Raises:
        KeyboardInterrupt: If it was interrupted; every process was asked to stop, and ends with
            the executor, as after any other error.
    """
    ended = dict(before)
    tries = dict.fromkeys(jobs, 0)
    waiting = {key: job for key, job in jobs.items() if key not in ended and not job.done}
    running: dict[Future[Done], str] = {}
    stopping.clear()
    for job in jobs.values():
        if job.drop_checkpoints and job.done:
            job.place.drop_checkpoints(job.key)
    try:
        while waiting or running:
            under_way = {*waiting, *running.values()}
            for key in [key for key, job in waiting.items() if not under_way & {*job.needs}]:
                job = waiting.pop(key)
                lost = [k for k in job.needs if k in ended and ended[k].status != "done"]
                if lost:
                    ended[key] = Done(key, "failed", f"run {lost[0]}, which it starts from, failed")
                    progress.ended(ended[key])
                    continue
                tries[key] += 1
                running[submit(function, job)] = key
                progress.begun(key)
            finished, _ = wait(running, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
            for future in finished:
                key = running.pop(future)
                again = tries[key] < MAX_TRIES
                try:
                    done = future.result()
                    # As a cluster does that takes a machine back.
                    again = again and done.status == "stopped" and not stopping.is_set()
                except Exception as error:  # the worker has ended, whatever kind it was of
                    line = " ".join(str(error).split())[:200] or type(error).__name__
                    done = Done(key, "failed", f"its workers ended {MAX_TRIES} times: {line}")
                if again:
                    waiting[key] = jobs[key]
                    continue
                ended[key] = done
                progress.ended(done)
            progress.look()
    except BaseException:
        for future in running:
            future.cancel()
        stop_children()
        raise
    return ended


class Progress:
    """Prints a line when a run ends, and now and then how far the others are.

    Args:
        plan: The plan.
        folder: Where runs lie.
        left: How many there are to make.
        write: Called behind each end, to write the results.
        shown: Whether anything is printed.
    """

    def __init__(
        self, plan: Plan, folder: StudyFolder, left: int, write: Callable[[], None], shown: bool
    ) -> None:
        self._folder, self._left, self._write, self._shown = folder, left, write, shown
        self._names = plan.names
        self._steps = {key: run.steps for key, run in plan.runs.items()}
        self._running: set[str] = set()
        self._done = 0
        self._printed = time.monotonic()

    def begun(self, key: str) -> None:
        """Note that a run was given to a worker."""
        self._running.add(key)

    def ended(self, done: Done) -> None:
        """Print what became of a run."""
        self._running.discard(done.key)
        self._done += 1
        self._write()
        if self._shown:
            what = f"in {in_words(done.seconds)}" if done.status == "done" else done.line
            verb = "" if done.status == "done" else f"{done.status}: "
            name = self._names.get(done.key, done.key)
            echo_err(f"{self._done} of {self._left}: {name}: {verb}{what}")

    def look(self) -> None:
        """Show how far the runs under way are: those whose steps have begun."""
        now = time.monotonic()
        if not self._shown or now - self._printed < _SECONDS_BETWEEN_LINES:
            return
        self._printed = now
        words = []
        for key in self._running:
            step, total = self._folder.step(key), self._steps.get(key)
            if step is not None:
                name = self._names.get(key, key)
                words.append(f"{name}: step {step:,}" + (f" of {total:,}" if total else ""))
        if words:
            echo_err(f"{self._done} of {self._left} done; {'; '.join(words)}")


def in_words(seconds: float) -> str:
    """Return a duration as people say it."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
