"""Runs many commands fast: a process that has imported everything forks once for each.

It is itself a fork of the tests' fork server, which has imported ``tests.fixtures.preloaded``. The
command runs ``cse_cli.main.main``, which is what the installed ``cse`` runs, in a process, a
session and a working folder of its own, with nothing left from the command before it.
"""

import atexit
import gc
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.fixtures.processes import fork_server
from tests.reliability.faults import Fault
from tests.reliability.outcomes import Answer

IMPORTED = ("datasets", "pyarrow.parquet", "scipy.stats")
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "CSE_CACHE": "off",
    "CSE_DATA_DIR": "/nowhere",
    "COLUMNS": "160",
    "OMP_NUM_THREADS": "1",
}
SECONDS = 60.0


class Server:
    """A process that forks for each command."""

    def __init__(self) -> None:
        context = fork_server()
        self._jobs, jobs = context.Pipe()
        self._process = context.Process(target=main, args=(jobs,), daemon=True)
        self._process.start()
        jobs.close()

    def call(
        self,
        words: Sequence[str],
        cwd: Path,
        *,
        env: Mapping[str, str] | None = None,
        given: bytes = b"",
        seconds: float = SECONDS,
        limits: Mapping[str, int] | None = None,
        streams: Mapping[int, str | None] | None = None,
        fault: Fault | None = None,
        user: int | None = None,
        gone: bool = False,
        umask: int = 0o022,
    ) -> Answer:
        """Run ``cse`` with ``words``.

        Args:
            given: What stdin holds.
            limits: Soft limits by the names of ``resource``: ``{"RLIMIT_FSIZE": 4096}``.
            streams: Files that are stdin (0), stdout (1) or stderr (2) instead; None closes one,
                ``|`` is a pipe whose reader has left.
            fault: What goes wrong inside.
            user: Number of the user who runs it; only root may choose another.
            gone: Whether the working folder is removed before it begins.
            umask: The umask of the process.
        """
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "0").write_bytes(given)
            job = {
                "words": list(words), "cwd": str(cwd), "env": dict(env or {}), "folder": folder,
                "seconds": seconds, "limits": dict(limits or {}), "streams": dict(streams or {}),
                "fault": fault and fault.model_dump(), "user": user, "gone": gone,
                "umask": umask,
            }  # fmt: skip
            self._jobs.send(job)
            done = self._jobs.recv()
            out, err = (
                (Path(folder) / name).read_bytes().decode(errors="backslashreplace")
                for name in ("1", "2")
            )
        return Answer(done["code"], out, err, done["hung"], done["seconds"])

    def memory(self) -> int:
        status = Path(f"/proc/{self._process.pid}/statm").read_text().split()
        return int(status[0]) * resource.getpagesize()

    def close(self) -> None:
        self._jobs.close()
        self._process.join()


@cache
def the_server() -> Server:
    server = Server()
    atexit.register(server.close)
    return server


def _child(job: Mapping[str, Any]) -> None:
    os.setsid()
    folder = Path(job["folder"])
    streams = {int(number): target for number, target in job["streams"].items()}
    os.dup2(os.open(folder / "0", os.O_RDONLY), 0)
    for number in (1, 2):
        target = streams.get(number, str(folder / str(number)))
        if target == "|":
            reader, writer = os.pipe()
            os.close(reader)
        else:
            writer = os.open(target or os.devnull, os.O_WRONLY | os.O_CREAT)
        os.dup2(writer, number)
        os.close(writer)
    for number in (number for number, target in streams.items() if target is None):
        os.close(number)
    # multiprocessing gave the server a stdin of its own.
    sys.stdin = None if streams.get(0, "") is None else open(0, encoding="utf-8", closefd=False)  # type: ignore[assignment]
    os.environ.update(job["env"])
    os.chdir(job["cwd"])
    if job["gone"]:
        shutil.rmtree(job["cwd"])
    os.umask(job["umask"])
    for name, value in job["limits"].items():
        kind = getattr(resource, name)
        resource.setrlimit(kind, (value, resource.getrlimit(kind)[1]))
    if job["user"] is not None:
        os.setuid(job["user"])
    if job["fault"] is not None:
        Fault(**job["fault"]).install()
    sys.argv = ["cse", *job["words"]]
    from cse_cli.main import main

    main()


def _answer(job: Mapping[str, Any]) -> dict[str, Any]:
    """Fork for a command and wait for its end, or kill it with all that it began."""
    for name in ("1", "2"):
        (Path(job["folder"]) / name).touch()
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _child(job)
            code = 0
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except (OSError, ValueError):
                    code = code or 120  # as the interpreter itself ends
            os._exit(code)
    hung = False
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() - began > job["seconds"]:
            hung = True
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            status = signal.SIGKILL
            break
        time.sleep(0.005)
    code = os.waitstatus_to_exitcode(status)
    return {"code": code, "hung": hung, "seconds": time.monotonic() - began}


def main(jobs: Connection) -> None:
    """Answer jobs until none comes."""
    os.environ.update(ENVIRONMENT)
    for name in IMPORTED:
        import_module(name)
    import_module("huggingface_hub.constants").HF_HUB_OFFLINE = True
    gc.freeze()
    with suppress(EOFError):
        while True:
            jobs.send(_answer(jobs.recv()))
