"""One walk over the installed distributions, for plugins and commands; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import Distribution, distributions


def registering_distributions() -> Iterator[tuple[Distribution, str | Exception]]:
    """Yield the distributions with an entry point of ``cse``, in the order of ``sys.path``.

    Beside each stands the text of its ``entry_points.txt``, or why it cannot be read.
    """
    for dist in distributions():
        try:
            text = dist.read_text("entry_points.txt") or ""
        except Exception as error:
            yield dist, error
        else:
            if "[cse" in text:
                yield dist, text
