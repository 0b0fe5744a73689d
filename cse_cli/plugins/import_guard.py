"""What an import of a plugin may not do to the process, and that it ends."""

from __future__ import annotations

import builtins
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from types import ModuleType
from typing import Any

from cse_cli.plugins.record_checks import PluginFault

SECONDS = 20.0
"""How long an import may take; those of plugins here take hundredths of a second."""
_STREAMS = ("stdin", "stdout", "stderr", "excepthook", "displayhook")
_WATCHED: tuple[ModuleType | type, ...] = (builtins, json, os, json.JSONEncoder, json.JSONDecoder)


@contextmanager
def guarded_import() -> Iterator[None]:
    """Keep what an import prints off stdout, end it after ``SECONDS``, and undo what it changed.

    Raises:
        PluginFault: At the end, if it took too long, or changed a stream, a function of Python's
            own or the working folder: that is put back.
    """
    before = _state()
    folder = os.getcwd() if os.path.isdir(".") else None
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(sys.stderr))
        stack.enter_context(_stdout_unused())
        stack.enter_context(_timed())
        stack.callback(_restore, before, folder)
        streams = {name: getattr(sys, name) for name in _STREAMS}
        yield
        changed = [f"sys.{name}" for name, was in streams.items() if getattr(sys, name) is not was]
        now = _state()
        changed += [
            f"{owner.__name__}.{name}"
            for owner, names in before.items()
            if owner is not sys
            for name, was in names.items()
            if now[owner].get(name) is not was
        ]
        if folder is not None and os.getcwd() != folder:
            changed.append("the working folder")
        if changed:
            raise PluginFault(f"its import changed {', '.join(changed)}, which is put back")


def _state() -> dict[Any, dict[str, Any]]:
    state: dict[Any, dict[str, Any]] = {owner: dict(vars(owner)) for owner in _WATCHED}
    state[sys] = {name: getattr(sys, name) for name in _STREAMS}
    return state


def _restore(before: dict[Any, dict[str, Any]], folder: str | None) -> None:
    for owner, names in before.items():
        for name, was in names.items():
            if vars(owner).get(name) is not was:
                setattr(owner, name, was)
    if folder is not None:
        os.chdir(folder)


@contextmanager
def _stdout_unused() -> Iterator[None]:
    """Drop what is written to the file of stdout past Python's stream, where nothing cleans it."""
    try:
        sys.__stdout__.flush()  # type: ignore[union-attr]
        kept = os.dup(1)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
    except (OSError, AttributeError, ValueError):
        yield
        return
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


@contextmanager
def _timed() -> Iterator[None]:
    def late(*_: object) -> None:
        raise PluginFault(f"its import took longer than {SECONDS:g} seconds and was ended")

    try:
        was = signal.signal(signal.SIGALRM, late)
    except ValueError:  # only the main thread hears signals
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, SECONDS, 1.0)  # again, where the first is swallowed
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, was)
