"""What becomes of exceptions: one line of what the machine refuses, or of whose bug it is."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import Distribution
from threading import current_thread, main_thread
from traceback import walk_tb
from typing import Any

from cse_cli.machine.out_files import check_text
from cse_cli.terminal.console import OutputLost
from cse_core.errors import CseError, PartError, describe

_REFUSALS = (
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO,
    errno.EMFILE, errno.ENFILE, errno.ENAMETOOLONG, errno.ENOMEM, errno.ESTALE, errno.ELOOP,
    errno.ETXTBSY, errno.EAGAIN,
)  # fmt: skip
"""What ``OSError`` says of the machine and of names; any other one is a bug."""
_MEMORY = re.compile("out of memory|can(no|')t allocate memory|bad_alloc|failed to map", re.I)
_THREADS = re.compile(r"can't start new thread|Resource temporarily unavailable", re.IGNORECASE)
_ENDED = re.compile(r"gloo/transport|closed by peer|reset by peer|ncclRemoteError|DistBackend")


def check_typed(words: Sequence[str]) -> None:
    """Refuse what no command can work with: bytes that are not text, a missing working folder."""
    for word in words:
        check_text(word)
    try:
        os.getcwd()
    except OSError:
        hint = "change to an existing folder"
        raise CseError("the working folder no longer exists", hint=hint) from None


def refusal(error: BaseException, words: Sequence[str]) -> CseError | None:
    """Return the line for an error of the machine, None for a bug."""
    text = describe(error)
    if isinstance(error, MemoryError) or "OutOfMemory" in text or _MEMORY.search(text):
        hint = "lower --batch-tokens, or take a smaller model or fewer texts"
        if words[:1] == ["train"]:
            hint = "set train.chunk_size or model.gradient_checkpointing, or lower "
            hint += "train.batch_size or model.max_length"
        if "failed to map" in text:  # of a library: the address space has no room for it
            hint = "allow the process more address space: ulimit -v"
        return CseError("out of memory", where=" ".join(["cse", *words[:1]]), hint=hint)
    if isinstance(error, RuntimeError) and _THREADS.search(text):
        hint = "lower train.threads, or ulimit"
        return CseError("the system refuses to start more threads", hint=hint)
    if isinstance(error, RuntimeError) and _ENDED.search(text):
        return CseError(
            "another process of this run has ended",
            hint="what it printed says why; start all processes again",
        )
    frames = list(walk_tb(error.__traceback__)) if isinstance(error, TypeError | ValueError) else []
    if frames and frames[-1][0].f_globals.get("__name__", "").startswith("importlib.metadata"):
        # Libraries look through every distribution, torch as soon as it is imported.
        known = {value.metadata["Name"] for frame, _ in frames for value in frame.f_locals.values()
                 if isinstance(value, Distribution)}  # fmt: skip
        return CseError(
            f"the metadata of {' or '.join(sorted(known)) or 'a distribution'} cannot be read",
            hint="install that distribution again, or remove it",
        )
    if isinstance(error, OSError) and error.errno in _REFUSALS:
        name = error.filename if isinstance(error.filename, str) else None
        if name and len(name) > 80:
            name = f"{name[:40]}…{name[-39:]}"
        return CseError(error.strerror or str(error), where=name)
    return None


@contextmanager
def exits_as_errors() -> Iterator[None]:
    """Let signals alone end the program: what code inside raises to that end becomes an error.

    SIGTERM and SIGHUP interrupt as Ctrl-C does, so that unfinished files are removed.

    Raises:
        KeyboardInterrupt: If a signal asked for it.
        OutputLost: If Typer ended it, which could not print.
        RuntimeError: From any other ``SystemExit`` and the like, whatever its code.
    """
    before: dict[int, Any] = {}
    asked: list[int] = []

    def interrupt(number: int, frame: object) -> None:
        asked.append(number)
        raise KeyboardInterrupt

    try:
        if current_thread() is main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    before[number] = signal.signal(number, interrupt)
        yield
    except Exception:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and asked:
            raise
        if isinstance(error.__context__, BrokenPipeError):  # Typer exits where its help is unread
            raise OutputLost(error.__context__) from None
        raise RuntimeError(f"{describe(error)} was raised") from error
    finally:
        for wanted, handler in before.items():
            signal.signal(wanted, handler)


_TOOLKIT = ("cse_core", "cse_engine", "cse_defaults", "cse_cli", "cse")
_ROOMS = tuple(f"{package}." for package in _TOOLKIT)


def plugin_from_traceback(error: BaseException, owners: Mapping[str, str]) -> str | None:
    """Return the line that names the plugin whose code raised an error, None where none did.

    The innermost frame that is a method of a part tells, else the innermost one of a plugin that
    called nothing of the core; the core's own parts keep their traceback. ``owners`` has the
    distributions with their versions, by the packages that are theirs.
    """
    if isinstance(error, PartError):
        return str(error)
    if error.__cause__ is not None and not isinstance(error.__cause__, Exception):
        error = error.__cause__  # which ``exits_as_errors`` has turned into an error
    frames = [frame for frame, _ in walk_tb(error.__traceback__)][::-1]
    parts: Any = sys.modules.get("cse_core.parts")
    for frame in frames if parts is not None else ():
        part = frame.f_locals.get("self")
        if isinstance(part, parts.Part) and not type(part).__module__.startswith(_ROOMS):
            return f"{part.path} of {part.owner}: {frame.f_code.co_name} raised {describe(error)}"
    for frame in frames:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package in owners:
            return f"{owners[package]}: {frame.f_code.co_qualname} raised {describe(error)}"
        if package in _TOOLKIT:
            break
    return None
