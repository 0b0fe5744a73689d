"""What a launcher of several processes says in the environment; imports no torch."""

from __future__ import annotations

import os

from cse_core.errors import CseError


def check_launch() -> None:
    """Refuse variables of torchrun, or of a launcher like it, that make no sense.

    Raises:
        CseError: If a variable is not a number, or they contradict each other.
    """
    rank, size = _number("RANK", 0), _number("WORLD_SIZE", 1, least=1)
    hint = "set both as torchrun does, or unset both for one process"
    if rank >= size:
        what = f"must be from 0 to {size - 1}, because WORLD_SIZE is {size}"
        raise CseError(what, where="RANK", value=rank, hint=hint)
    if size > 1 and "RANK" not in os.environ:
        raise CseError("is not set, but WORLD_SIZE is", where="RANK", hint=hint)
    _number("LOCAL_RANK", 0)
    _number("CSE_JOIN_SECONDS", 30, least=1)


def _number(name: str, default: int, least: int = 0) -> int:
    text = os.environ.get(name, "").strip() or str(default)
    if text.isascii() and text.isdecimal() and len(text) < 6 and int(text) >= least:
        return int(text)
    what = f"must be an integer from {least} to 99999"
    raise CseError(what, where=name, value=text, hint="unset it, or start with torchrun")
