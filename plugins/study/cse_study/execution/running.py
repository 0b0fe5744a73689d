"""Carrying a plan out: what carries runs out, and those first that others start from."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cse_core.errors import CseError
from cse_study.execution.folder import StudyFolder
from cse_study.execution.jobs import Done, Job, Scoring, make, stop_children, stopping
from cse_study.planning.plan import Plan

MAX_TRIES = 4
"""How often a run is given to a worker, when workers end before it does."""
_POLL_SECONDS = 0.5
Submit = Callable[[Callable[[Job], Done], Job], "Future[Done]"]
"""Gives a job to a worker, with the function that makes it."""
_MAX_CLUSTER_JOBS = 1000


def check_executor(text: str) -> None:
    """Refuse a name that no executor has.

    Raises:
        CseError: If there is none of this name.
    """
    name, _, rest = text.partition(":")
    if name not in ("local", "submitit", "submitit-local") or (name == "local" and rest):
        hint = "local, submitit, submitit:NAME=VALUE,NAME=VALUE, submitit-local"
        raise CseError("no such executor", where="--executor", value=text, hint=hint)


def is_here(text: str) -> bool:
    """Tell whether runs see the network and the cache of this machine."""
    return text == "local" or text.partition(":")[0] == "submitit-local"


def threads_of(text: str, workers: int | None) -> int | None:
    """Return the CPU threads of a run, so that those at a time share the cores; None leaves them.

    ``OMP_NUM_THREADS`` goes before it, and an executor with one run at a time leaves them.
    """
    if text != "local" or (workers or 1) == 1 or os.environ.get("OMP_NUM_THREADS"):
        return None
    return max(1, (os.cpu_count() or 1) // (workers or 1))


@contextmanager
def executor_of(text: str, workers: int | None, logs: Path) -> Iterator[Submit]:
    """Give what ``--executor`` names: what jobs are given to.

    Args:
        text: ``local``; ``submitit``, with parameters behind a colon,
            ``submitit:slurm_partition=gpu,timeout_min=240``; ``submitit-local``, its processes on
            this machine.
        workers: How many runs at a time; of ``submitit`` it is not used.
        logs: Folder for what submitit writes.

    Raises:
        CseError: If submitit is missing or refuses its parameters.
    """
    name, _, parameters = text.partition(":")
    cluster: Any = None if name == "local" else _submitit(name, parameters, logs)
    sent: list[Any] = []

    def on_cluster(function: Callable[[Job], Done], job: Job) -> Done:
        sent.append(cluster.submit(function, job))
        found: Done = sent[-1].result()
        return found

    pool = ThreadPoolExecutor((workers or 1) if cluster is None else _MAX_CLUSTER_JOBS)
    try:
        if cluster is None:
            yield pool.submit
        else:
            yield lambda function, job: pool.submit(on_cluster, function, job)
    finally:
        for each in sent:
            if not each.done():
                each.cancel(check=False)
        pool.shutdown(wait=True, cancel_futures=True)


def _submitit(name: str, parameters: str, folder: Path) -> Any:
    """Return submitit's executor, its parameters given as ``NAME=VALUE,NAME=VALUE``."""
    try:
        from submitit import AutoExecutor
    except ImportError:
        hint = "pip install 'cse-study[submitit]'"
        raise CseError("needs the package submitit", where="--executor", hint=hint) from None
    executor = AutoExecutor(folder=folder, cluster="local" if name == "submitit-local" else None)
    given: dict[str, Any] = {"timeout_min": 24 * 60}
    for text in filter(None, parameters.split(",")):
        key, equals, value = text.partition("=")
        if not equals:
            hint = "write submitit:NAME=VALUE,NAME=VALUE"
            raise CseError("is not NAME=VALUE", where="--executor", value=text, hint=hint)
        given[key.strip()] = int(value) if value.isdigit() else value
    try:
        executor.update_parameters(**given)
    except (NameError, TypeError, ValueError, AssertionError) as error:
        what = " ".join(str(error).split())[:300]
        raise CseError(what, where="--executor", value=parameters) from None
    return executor


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
    where = str(folder.path.absolute())
    kept = {key for run in plan.runs.values() if not run.recipe for key in run.needs}
    return {
        key: Job(
            folder=where,
            run=replace(run, composition=None),
            scoring=scoring if key in plan.scored else None,
            threads=threads,
            drop_checkpoints=drop_checkpoints and key not in kept,
        )
        for key, run in plan.runs.items()
    }


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
            for key in [key for key, job in waiting.items() if not under_way & {*job.run.needs}]:
                job = waiting.pop(key)
                lost = [k for k in job.run.needs if k in ended and ended[k].status != "done"]
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
