"""A command of ``cse``, or a function, in a process of its own: ``python -m`` runs this file.

It ends as after SIGTERM when the process that started it ends, however that happens, so that a run
writes its checkpoint and lets go of its lock.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from cse_study.execution.forks import end_with, serve


def start() -> list[str]:
    """Build the start of all these command lines; a fork needs only what follows it."""
    return [sys.executable, "-m", __name__, str(os.getpid())]


def command(*words: str) -> list[str]:
    """Build the command line that runs a command of ``cse`` in a process of its own."""
    return [*start(), "cse", *words]


def function(call: str, settings: str, output: str) -> list[str]:
    """Build the command line that calls a function: settings and result are in files."""
    return [*start(), "call", call, settings, output]


def server() -> list[str]:
    """Build the command line of a process that forks; it lacks the number of a socket."""
    return [*start(), "serve"]


def main(arguments: Sequence[str]) -> int:
    """Do what the arguments say, and return the exit code."""
    parent, what, *words = arguments
    end_with(int(parent))
    if what == "serve":
        what, *words = serve(int(*words))
    if what == "cse":
        (script,) = entry_points(group="console_scripts", name="cse")
        sys.argv = ["cse", *words]
        script.load()()
        return 0
    from cse_core.errors import CseError

    try:
        _call(*words)
    except CseError as error:
        from cse_cli.api import fail

        fail(error)
        return 2
    return 0


def _call(call: str, settings: str, output: str) -> None:
    from cse_core.files import atomic_write
    from cse_core.loading import load_factory

    given: dict[str, Any] = json.loads(Path(settings).read_text(encoding="utf-8"))
    result = load_factory(call, where="call")(given)
    atomic_write(Path(output), json.dumps(result, ensure_ascii=False, default=_plain) + "\n")


def _plain(value: Any) -> Any:
    """Return an array as a list, and a number of another library as Python's own."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
