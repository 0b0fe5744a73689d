"""Files and folders that a command is asked to write."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from cse_core.errors import CseError


@contextmanager
def out_file(path: Path, where: str = "--out", *, keep: bool = True) -> Iterator[Path]:
    """Give a file beside ``path`` to write, and rename it to ``path`` when all is written.

    Args:
        path: The file; replaced if it is there.
        where: The flag that named it, for errors.
        keep: Without it, writing is only tried: see :func:`check_out_file`.

    Raises:
        CseError: If it cannot be written.
    """
    from cse_core.files import atomic_file

    if path.is_dir():
        raise CseError("is a folder", where=where, value=str(path), hint="name a file")
    if not os.path.lexists(path.parent):
        hint = f"make it: mkdir -p {quote(str(path.parent))}"
        raise CseError("its folder does not exist", where=where, value=str(path), hint=hint)
    try:
        with atomic_file(path, keep=keep) as made:
            yield made
    except OSError as error:
        raise CseError(
            f"cannot be written: {error.strerror or error}",
            where=where,
            value=str(path),
            hint="name a file in a folder that you may write to",
        ) from None


def check_out_file(path: Path, where: str = "--out") -> None:
    """Refuse a file that cannot be written, before the work for it.

    Raises:
        CseError: As :func:`out_file`.
    """
    with out_file(path, where, keep=False):
        pass


def check_out_folder(path: Path, where: str = "--out") -> None:
    """Refuse a folder that could not be made or written to; nothing is made.

    Raises:
        CseError: If a file is in its way, or its place may not be written to.
    """
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        what = "is a file" if not there.is_dir() else "may not be written to"
        hint = "name a folder that can be made"
        raise CseError(f"{there} {what}", where=where, value=str(path), hint=hint)
