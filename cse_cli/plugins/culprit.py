"""Which part of a plugin an exception came from."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb
from typing import Any

from cse_cli.terminal.console import OutputLost
from cse_core.errors import PartError


@contextmanager
def exits_as_errors() -> Iterator[None]:
    """Let no code inside end the program: its ``sys.exit`` becomes an error.

    Raises:
        OutputLost: If it was that of Typer, which could not print.
        RuntimeError: From any other ``SystemExit``, whatever its code.
    """
    try:
        yield
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # Typer exits where its help is unread
            raise OutputLost(error.__context__) from None
        raise RuntimeError(f"sys.exit({error.code!r}) was called") from error


def plugin_from_traceback(error: BaseException) -> str | None:
    """Return the line that names the plugin whose part raised an error, None where none did.

    The innermost frame that is a method of a part tells; the core's own parts keep their traceback.
    """
    if isinstance(error, PartError):
        return str(error)
    if isinstance(error.__cause__, SystemExit):
        error = error.__cause__
    parts: Any = sys.modules.get("cse_core.parts")
    if parts is None:
        return None
    for frame, _ in reversed(list(walk_tb(error.__traceback__))):
        part = frame.f_locals.get("self")
        if isinstance(part, parts.Part) and not type(part).__module__.startswith("cse_core."):
            said = " ".join(str(error).split())
            what = f"{frame.f_code.co_name} raised {type(error).__name__}: {said}"
            return f"{part.path} of {part.owner}: {what}"
    return None
