"""What carries runs out: threads of this machine, submitit for clusters such as Slurm, or dask."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from cse_core.errors import CseError

_NAMES = ("local", "submitit", "submitit-local", "dask")
_POLL = 1.0
"""Seconds between two looks at a job of a cluster."""


def check_executor(text: str) -> None:
    """Refuse a name that no executor has.

    Raises:
        CseError: If there is none of this name.
    """
    name, _, rest = text.partition(":")
    if name not in _NAMES or (name == "local" and rest):
        hint = "local, submitit, submitit-local, dask, dask:tcp://HOST:PORT"
        raise CseError("no such executor", where="--executor", value=text, hint=hint)


@contextmanager
def executor_of(text: str, workers: int | None, logs: Path) -> Iterator[Executor]:
    """Give the executor that ``--executor`` names.

    Args:
        text: ``local``; ``submitit``, with parameters behind a colon,
            ``submitit:slurm_partition=gpu,timeout_min=240``; ``submitit-local``, its processes on
            this machine; ``dask``, with workers on this machine, or ``dask:ADDRESS``.
        workers: How many runs at a time; of ``submitit`` and an address it is not used.
        logs: Folder for what submitit writes.

    Raises:
        CseError: If there is none of this name, a package is missing, or the cluster cannot be had.
    """
    check_executor(text)
    name, _, rest = text.partition(":")
    if name == "local":
        pool = ThreadPoolExecutor(workers or 1, thread_name_prefix="run")
        try:
            yield pool
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    elif name in ("submitit", "submitit-local"):
        jobs = SubmititExecutor(name, rest, logs)
        try:
            yield jobs
        finally:
            jobs.shutdown()
    else:
        with _dask(rest, workers) as workers_of_dask:
            yield workers_of_dask


def is_here(text: str) -> bool:
    """Tell whether runs see the network and the cache of this machine."""
    return text in ("local", "dask") or text.partition(":")[0] == "submitit-local"


def at_once(text: str, workers: int | None) -> int:
    """Return how many runs share this machine's cores."""
    if text == "dask":
        return workers or 2
    return workers or 1 if text == "local" else 1


def threads_of(text: str, workers: int | None) -> int | None:
    """Return the CPU threads of a run, so that those at a time share the cores; None leaves them.

    ``OMP_NUM_THREADS`` goes before it, and an executor with one run at a time leaves them.
    """
    several = at_once(text, workers)
    if several == 1 or os.environ.get("OMP_NUM_THREADS"):
        return None
    return max(1, (os.cpu_count() or 1) // several)


@contextmanager
def _dask(address: str, workers: int | None) -> Iterator[Executor]:
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise _missing("dask", "distributed") from None

    try:
        if address:
            client = distributed.Client(address, timeout="10s")
            cluster = None
        else:
            cluster = distributed.LocalCluster(
                n_workers=workers or 2, threads_per_worker=1, processes=True,
                dashboard_address=":0", silence_logs=logging.CRITICAL,
            )  # fmt: skip
            client = distributed.Client(cluster)
    except (OSError, TimeoutError, ValueError) as error:
        what = f"the cluster does not answer: {' '.join(str(error).split())[:200]}"
        hint = "start one with `dask scheduler`, and workers with `dask worker ADDRESS`"
        raise CseError(what, where="--executor", value=f"dask:{address}", hint=hint) from None
    try:
        # A run that a worker took with it when it died is resumed by another one.
        yield client.get_executor(pure=False, retries=3)
    finally:
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        client.close()
        if cluster is not None:
            cluster.close()


class SubmititExecutor(Executor):
    """submitit as an executor of ``concurrent.futures``: each call is a job of the cluster.

    Args:
        name: ``submitit`` asks for Slurm, where it is there; ``submitit-local`` makes processes.
        parameters: ``NAME=VALUE,NAME=VALUE``, parameters of submitit.
        folder: Where submitit writes.
    """

    def __init__(self, name: str, parameters: str, folder: Path) -> None:
        try:
            submitit: Any = import_module("submitit")
        except ImportError:
            raise _missing("submitit", "submitit") from None
        cluster = "local" if name == "submitit-local" else None
        self._executor: Any = submitit.AutoExecutor(folder=folder, cluster=cluster)
        given: dict[str, Any] = {"timeout_min": 24 * 60}
        for text in filter(None, parameters.split(",")):
            key, equals, value = text.partition("=")
            if not equals:
                hint = "write submitit:NAME=VALUE,NAME=VALUE"
                raise CseError("is not NAME=VALUE", where="--executor", value=text, hint=hint)
            given[key.strip()] = int(value) if value.isdigit() else value
        try:
            self._executor.update_parameters(**given)
        except (NameError, TypeError, ValueError, AssertionError) as error:
            what = " ".join(str(error).split())[:300]
            raise CseError(what, where="--executor", value=parameters) from None
        self._jobs: list[tuple[Any, Future[Any]]] = []
        self._closed = threading.Event()
        self._watch: threading.Thread | None = None

    def submit(self, call: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        """Send a job to the cluster."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        self._jobs.append((self._executor.submit(call, *given, **named), future))
        if self._watch is None:
            self._watch = threading.Thread(target=self._look, daemon=True)
            self._watch.start()
        return future

    def _look(self) -> None:
        while not self._closed.is_set():
            for job, future in tuple(self._jobs):
                if future.done() or not job.done():
                    continue
                try:
                    future.set_result(job.result())
                except BaseException as error:  # whatever came back from another process
                    future.set_exception(error)
            time.sleep(_POLL)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the jobs that have not ended."""
        self._closed.set()
        for job, future in self._jobs:
            if not future.done():
                job.cancel(check=False)


def _missing(extra: str, package: str) -> CseError:
    hint = f"pip install 'cse-study[{extra}]'"
    return CseError(f"needs the package {package}", where="--executor", hint=hint)
