"""Keeping libraries from printing between our own lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


def silence() -> None:
    """Keep the libraries' own bars and hints off stderr, where ours are."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()


@contextmanager
def libraries_quiet() -> Iterator[None]:
    """Do so for a while, in a process that is not ours alone."""
    from transformers.utils import logging

    bars, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    silence()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
