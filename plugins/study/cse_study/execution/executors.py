"""What carries runs out: threads of this machine, submitit for clusters such as Slurm, or dask."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from cse_core.errors import CseError
from cse_study.execution.jobs import Done, Job

Submit = Callable[[Callable[[Job], Done], Job], "Future[Done]"]
"""Gives a job to a worker, with the function that makes it."""
_NAMES = ("local", "submitit", "submitit-local", "dask")
_MAX_CLUSTER_JOBS = 1000
_DASK_WORKERS = 2
"""Of a cluster on this machine."""


def check_executor(text: str) -> None:
    """Refuse a name that no executor has.

    Raises:
        CseError: If there is none of this name.
    """
    name, _, rest = text.partition(":")
    if name not in _NAMES or (name == "local" and rest):
        hint = "local, submitit, submitit-local, dask, dask:tcp://HOST:PORT"
        raise CseError("no such executor", where="--executor", value=text, hint=hint)


def is_here(text: str) -> bool:
    """Tell whether runs see the network and the cache of this machine."""
    return text in ("local", "dask") or text.partition(":")[0] == "submitit-local"


def threads_of(text: str, workers: int | None) -> int | None:
    """Return the CPU threads of a run, so that those at a time share the cores; None leaves them.

    ``OMP_NUM_THREADS`` goes before it, and an executor with one run at a time leaves them.
    """
    at_once = {"local": workers or 1, "dask": workers or _DASK_WORKERS}.get(text, 1)
    if at_once == 1 or os.environ.get("OMP_NUM_THREADS"):
        return None
    return max(1, (os.cpu_count() or 1) // at_once)


@contextmanager
def executor_of(text: str, workers: int | None, logs: Path) -> Iterator[Submit]:
    """Give what ``--executor`` names: what jobs are given to.

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
    if name == "dask":
        with _dask(rest, workers) as client:
            # A run that a worker took with it when it died is resumed by another one.
            yield client.get_executor(pure=False, retries=3).submit
        return
    cluster: Any = None if name == "local" else _submitit(name, rest, logs)
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
    cluster = "local" if name == "submitit-local" else None
    executor = _package("submitit").AutoExecutor(folder=folder, cluster=cluster)
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


@contextmanager
def _dask(address: str, workers: int | None) -> Iterator[Any]:
    """Give a client of a cluster of dask: the one at an address, or one on this machine."""
    distributed = _package("dask")
    cluster = None
    try:
        if not address:
            cluster = distributed.LocalCluster(
                n_workers=workers or _DASK_WORKERS, threads_per_worker=1, processes=True,
                dashboard_address=":0", silence_logs=logging.CRITICAL,
            )  # fmt: skip
        client = distributed.Client(cluster or address, timeout="10s")
    except (OSError, TimeoutError, ValueError) as error:
        what = f"the cluster does not answer: {' '.join(str(error).split())[:200]}"
        hint = "start one with `dask scheduler`, and workers with `dask worker ADDRESS`"
        raise CseError(what, where="--executor", value=f"dask:{address}", hint=hint) from None
    try:
        yield client
    finally:
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        client.close()
        if cluster is not None:
            cluster.close()


def _package(extra: str) -> Any:
    """Import the package of an extra.

    Raises:
        CseError: If it is not installed.
    """
    package = "distributed" if extra == "dask" else extra
    try:
        return import_module(package)
    except ImportError:
        hint = f"pip install 'cse-study[{extra}]'"
        what = f"needs the package {package}"
        raise CseError(what, where="--executor", hint=hint) from None
