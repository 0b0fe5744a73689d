"""Carrying a plan out: what is not there is made, those runs first that others start from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from cse_core import __version__
from cse_study.definition import schema
from cse_study.execution.folder import StudyFolder
from cse_study.execution.jobs import After, Done, Job, Scoring, make, stop_children, stopping
from cse_study.planning.inputs import RUN
from cse_study.planning.keys import digest
from cse_study.planning.plan import Plan

TRIES = 4
"""How often a run is given to a worker, when workers end before it does."""
_LOOK = 0.5
"""Seconds between two looks at what goes on."""


@dataclass
class Work:
    """The jobs of a plan by key, and the keys that each waits for."""

    jobs: dict[str, Job] = field(default_factory=dict)
    after: dict[str, tuple[str, ...]] = field(default_factory=dict)


class Watcher:
    """Hears what becomes of jobs; this one says nothing."""

    def begun(self, key: str) -> None:
        """Hear that a job was given to a worker."""

    def ended(self, done: Done) -> None:
        """Hear what became of a job."""

    def look(self) -> None:
        """Be asked now and then, to show how far it is."""


def after_of(wanted: schema.After | None, scoring: Scoring | None) -> After | None:
    """Return the function of finished runs that a study names, None without one."""
    if wanted is None or scoring is None:
        return None
    settings = dict(wanted.model_extra or {})
    return After(digest([wanted.call, settings, scoring.key, __version__]), wanted.call, settings)


def work_of(
    plan: Plan,
    folder: StudyFolder,
    scoring: Scoring | None,
    threads: int | None = None,
    *,
    lean: bool = False,
) -> Work:
    """Return the jobs of a plan.

    Where it is ``lean``, checkpoints are deleted, but of runs that commands or functions look into.
    """
    work = Work()
    looked_into = {key for call in plan.calls for key in call.starts}
    scored = plan.scored
    for key, run in plan.runs.items():
        work.jobs[key] = Job(
            folder=str(folder.path.absolute()),
            key=key,
            recipe=run.recipe,
            untrained=run.untrained,
            scoring=scoring if key in scored else None,
            after=after_of(plan.definition.study.after, scoring) if key in scored else None,
            without=run.without,
            threads=threads,
            lean=lean and key not in looked_into,
        )
        work.after[key] = () if run.start is None else (run.start,)
    for call in plan.calls:
        work.jobs[call.key] = Job(
            folder=str(folder.path.absolute()),
            key=call.key,
            command=tuple(_placed(word, folder) for word in call.command),
            call="" if call.command else plan.definition.study.call,
            settings={name: _placed(value, folder) for name, value in call.settings.items()},
            threads=threads,
        )
        work.after[call.key] = call.starts
    return work


def _placed(value: Any, folder: StudyFolder) -> Any:
    """Return a value with the folder of a run in the place of its key."""
    if isinstance(value, str) and value.startswith(RUN):
        return str(folder.run(value.removeprefix(RUN)).absolute())
    return value


def carry_out(
    work: Work,
    executor: Executor,
    watcher: Watcher,
    before: Mapping[str, Done] = MappingProxyType({}),
    *,
    function: Callable[[Job], Done] = make,
) -> Mapping[str, Done]:
    """Make every job that is not there, and return what became of those that were given out.

    A job whose worker ends before it does, or is asked to stop, is given to another one, up to
    ``TRIES`` times. A job that waits for one that failed is not begun.

    Args:
        work: The jobs.
        executor: What makes them.
        watcher: Hears of them.
        before: What became of jobs in an earlier pass; those that failed are not tried again.
        function: What makes one.

    Raises:
        KeyboardInterrupt: If it was interrupted; every process was asked to stop, and ends with
            the executor, as after any other error.
    """
    ended = dict(before)
    tries: dict[str, int] = {}
    waiting = {key: job for key, job in work.jobs.items() if key not in ended and not job.done}
    running: dict[Future[Done], str] = {}
    stopping.clear()
    for job in work.jobs.values():
        if job.lean and job.done:
            job.place.drop_checkpoints(job.key)
    try:
        while waiting or running:
            for key in [key for key in waiting if _ready(key, work, waiting, running)]:
                job = waiting.pop(key)
                lost = [k for k in work.after[key] if k in ended and ended[k].status != "done"]
                if lost:
                    ended[key] = Done(key, "failed", f"run {lost[0]}, which it starts from, failed")
                    watcher.ended(ended[key])
                    continue
                tries[key] = tries.get(key, 0) + 1
                running[executor.submit(function, job)] = key
                watcher.begun(key)
            finished, _ = wait(running, timeout=_LOOK, return_when=FIRST_COMPLETED)
            for future in finished:
                key = running.pop(future)
                try:
                    done = future.result()
                except Exception as error:  # the worker has ended, whatever kind it was of
                    if tries[key] < TRIES:
                        waiting[key] = work.jobs[key]
                        continue
                    line = " ".join(str(error).split())[:200] or type(error).__name__
                    done = Done(key, "failed", f"its workers ended {TRIES} times: {line}")
                if done.status == "stopped" and not stopping.is_set() and tries[key] < TRIES:
                    waiting[key] = work.jobs[key]  # as a cluster does that takes a machine back
                    continue
                ended[key] = done
                watcher.ended(done)
            watcher.look()
    except BaseException:
        for future in running:
            future.cancel()
        stop_children()
        raise
    return ended


def _ready(
    key: str,
    work: Work,
    waiting: Mapping[str, Job],
    running: Mapping[Future[Done], str],
) -> bool:
    under_way = {*waiting, *running.values()}
    return not any(before in under_way for before in work.after[key])
