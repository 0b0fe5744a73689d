"""One walk over the installed distributions, for plugins and commands; imports nothing heavy."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from importlib.metadata import Distribution, distributions


def registering_distributions() -> tuple[tuple[Distribution, str | Exception], ...]:
    """Return the distributions with an entry point of ``cse``, in the order of ``sys.path``.

    Beside each stands the text of its ``entry_points.txt``, or why it cannot be read.
    """
    return _walk(tuple((folder, _changed(folder)) for folder in sys.path))


@lru_cache(maxsize=1)
def _walk(
    folders: tuple[tuple[str, int | None], ...],
) -> tuple[tuple[Distribution, str | Exception], ...]:
    found: list[tuple[Distribution, str | Exception]] = []
    for dist in distributions():
        try:
            text = dist.read_text("entry_points.txt") or ""
        except Exception as error:
            found.append((dist, error))
            continue
        if "[cse" in text:
            found.append((dist, text))
    return tuple(found)


def _changed(folder: str) -> int | None:
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return None
