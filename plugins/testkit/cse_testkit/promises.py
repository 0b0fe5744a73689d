"""What a broken promise is, and how a suite is run without pytest."""

from __future__ import annotations

import traceback
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest


class BrokenPromise(AssertionError):
    """A part does not do what the core relies on; the text says what it did."""


def promise(kept: bool, text: str) -> None:
    """Raise with a text unless a promise is kept.

    Raises:
        BrokenPromise: If it is not.
    """
    if not kept:
        raise BrokenPromise(text)


def failures(suite: type[Any], tests: Collection[str] | None = None) -> dict[str, str]:
    """Run a suite without pytest.

    Args:
        suite: A subclass of a suite with ``part`` (or ``distribution``, ``recipe``) set.
        tests: Names of the tests to run, without a value in brackets; None is all.

    Returns:
        What failed, by test; ``name[value]`` for each value of a parametrised test. Skipped tests
        are left out; an error that is not a broken promise comes with its last line of traceback.
    """
    failed: dict[str, str] = {}
    for name in dir(suite):
        if not name.startswith("test_") or (tests is not None and name not in tests):
            continue
        for label, arguments in _cases(name, getattr(suite, name)):
            try:
                getattr(suite(), name)(*arguments)
            except pytest.skip.Exception:
                continue
            except AssertionError as error:
                failed[label] = str(error)
            except Exception as error:
                place = traceback.extract_tb(error.__traceback__)[-1]
                failed[label] = (
                    f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
                )
    return failed


def _cases(name: str, test: Any) -> list[tuple[str, tuple[Any, ...]]]:
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    if not marks:
        return [(name, ())]
    return [(f"{name}[{value}]", (value,)) for value in marks[0].args[1]]
