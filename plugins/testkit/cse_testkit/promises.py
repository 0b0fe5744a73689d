"""What a broken promise is, which promises wait for others, and how they are asked without pytest.

The promises are the methods ``test_…`` of the suites: pytest runs them, and so does
``cse check-plugin``. One that makes no sense where another is broken is marked by :func:`after` and
is not asked then, so that one mistake is one failure.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest

Status = Literal["kept", "broken", "waiting", "not meant"]
Test = TypeVar("Test", bound=Callable[..., None])


class BrokenPromise(AssertionError):
    """A part does not do what the core relies on; the text says what it did."""


@dataclass(frozen=True)
class Asked:
    """What became of a promise.

    Attributes:
        name: Of the test, with its value in brackets where it has several.
        status: ``kept``; ``broken``; ``waiting``, since one before it is broken; ``not meant`` for
            this part.
        detail: What broke it, which one it waits for, or why it is not meant.
        error: What was raised.
    """

    name: str
    status: Status
    detail: str = ""
    error: BaseException | None = None


def promise(kept: bool, text: str) -> None:
    """Raise with a text unless a promise is kept.

    Raises:
        BrokenPromise: If it is not.
    """
    if not kept:
        raise BrokenPromise(text)


def after(*names: str) -> Callable[[Test], Test]:
    """Mark a promise that is asked only where others of its suite are kept.

    A suite adds to them by ``first``, a mapping of a promise to those before it. With pytest such a
    promise is skipped, and the reason names the broken one.

    Args:
        names: The promises before it.
    """

    def marked(test: Test) -> Test:
        name = test.__name__

        @wraps(test)
        def asked(self: Any, *values: Any, **named: Any) -> None:
            root = _root(type(self), name)
            if root is not None:
                pytest.skip(f"not asked, since {root} is broken")
            if values or named:
                test(self, *values, **named)
                return
            memo = _memo(type(self))
            memo[name] = [_run(self, name, test, ())]
            error = memo[name][0].error
            if error is not None:
                raise error

        asked.after = names  # type: ignore[attr-defined]
        return asked  # type: ignore[return-value]

    return marked


def ask(suite: type[Any]) -> Iterator[Asked]:
    """Yield what becomes of every promise of a suite, without pytest.

    Args:
        suite: A subclass of a suite with ``part`` (or ``distribution``, ``recipe``) set.
    """
    for name in _tests(suite):
        yield from _outcomes(suite, name)


def failures(suite: type[Any], tests: Collection[str] | None = None) -> dict[str, str]:
    """Return the broken promises of a suite, asked without pytest.

    Args:
        suite: As for :func:`ask`.
        tests: Names of the tests to run, without a value in brackets, whatever comes before them;
            None is all, and those that wait for a broken one are not run.

    Returns:
        What failed, by test; ``name[value]`` for each value of a parametrised test. An error that
        is not a broken promise comes with its last line of traceback.
    """
    if tests is None:
        found = list(ask(suite))
    else:
        found = [
            _run(suite(), label, inspect.unwrap(test), values)
            for name in _tests(suite)
            if name in tests
            for label, test, values in _cases(suite, name)
        ]
    return {each.name: each.detail for each in found if each.status == "broken"}


def _tests(suite: type[Any]) -> list[str]:
    """Return the names of a suite's promises, those of its bases first, as they are written."""
    names = [name for base in reversed(suite.__mro__) for name in vars(base)]
    return [name for name in dict.fromkeys(names) if name.startswith("test_")]


def _memo(suite: type[Any]) -> dict[str, list[Asked]]:
    if "_asked" not in vars(suite):
        suite._asked = {}
    memo: dict[str, list[Asked]] = suite._asked
    return memo


def _outcomes(suite: type[Any], name: str) -> list[Asked]:
    memo = _memo(suite)
    if name not in memo:
        root = _root(suite, name)
        memo[name] = [
            _run(suite(), label, inspect.unwrap(test), values)
            if root is None
            else Asked(label, "waiting", f"{root} is broken")
            for label, test, values in _cases(suite, name)
        ]
    return memo[name]


def _root(suite: type[Any], name: str) -> str | None:
    """Return the broken promise that one waits for, or None."""
    before = getattr(getattr(suite, name), "after", ())
    for earlier in (*before, *getattr(suite, "first", {}).get(name, ())):
        for each in _outcomes(suite, earlier):
            if each.status == "broken":
                return each.name
        root = _root(suite, earlier)
        if root is not None:
            return root
    return None


def _run(made: Any, label: str, test: Callable[..., Any], values: tuple[Any, ...]) -> Asked:
    try:
        test(made, *values)
    except pytest.skip.Exception as skipped:
        return Asked(label, "not meant", str(skipped), skipped)
    except AssertionError as error:
        return Asked(label, "broken", str(error), error)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"({Path(place.filename).name}:{place.lineno})"
        return Asked(label, "broken", f"{type(error).__name__}: {error} {where}", error)
    return Asked(label, "kept")


def _cases(suite: type[Any], name: str) -> list[tuple[str, Any, tuple[Any, ...]]]:
    test = getattr(suite, name)
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    if not marks:
        return [(name, test, ())]
    return [(f"{name}[{value}]", test, (value,)) for value in marks[0].args[1]]
