"""Carrying a plan out: what is not there is made, those runs first that others start from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from types import MappingProxyType
from typing import Any

from cse_study.execution.executors import Submit
from cse_study.execution.folder import StudyFolder
from cse_study.execution.jobs import Done, Job, Scoring, make, stop_children, stopping
from cse_study.planning.inputs import RUN
from cse_study.planning.plan import Plan

MAX_TRIES = 4
"""How often a run is given to a worker, when workers end before it does."""
_POLL_SECONDS = 0.5


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
    hear: Callable[[Done], object],
    before: Mapping[str, Done] = MappingProxyType({}),
    *,
    look: Callable[[Collection[str]], object] = len,
    function: Callable[[Job], Done] = make,
) -> Mapping[str, Done]:
    """Make every job that is not there, and return what became of those that were given out.

    A job whose worker ends before it does, or is asked to stop, is given to another one, up to
    ``MAX_TRIES`` times. A job that needs one that failed is not begun.

    Args:
        jobs: The jobs by key.
        submit: Gives one to a worker.
        hear: Is called with what became of each when it ends.
        before: What became of jobs in an earlier pass; those that failed are not tried again.
        look: Is called again and again with the keys of those under way.
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
                    hear(ended[key])
                    continue
                tries[key] += 1
                running[submit(function, job)] = key
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
                hear(done)
            look(running.values())
    except BaseException:
        for future in running:
            future.cancel()
        stop_children()
        raise
    return ended
