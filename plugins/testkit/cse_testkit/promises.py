"""What a suite of promises is, and how pytest and ``cse check-plugin`` ask them.

A suite is a class. Each of its methods ``promise_…`` asks one promise: its docstring says what is
promised, and what it raises says what was found. They are asked in order, those of the bases first,
and none after the first that is broken: what follows rests on it, so one mistake is one failure.
"""

from __future__ import annotations

import inspect
import io
import traceback
from collections.abc import Collection, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from cse_cli.api import Installed, Registry
from cse_core.errors import CseError, PartError, truncate_repr

_PREFIX = "promise_"


class NotMeant(Exception):
    """What a promise raises that means nothing for this part; the text says why."""


class NotAsked(NotMeant):
    """What a promise raises that means something and cannot be asked; the text says why."""


@dataclass(frozen=True)
class Asked:
    """What became of a promise.

    Attributes:
        name: Of the promise.
        status: ``not meant`` for this part; ``not asked`` where ``detail`` says why, or since one
            before it is broken.
        says: The promise in words.
        detail: What broke it, or why it is not meant or not asked.
        part: Whose promise, in ``cse check-plugin``: ``loss margin``, ``recipe margin``.
        file: Where to fix it there.
    """

    name: str
    status: Literal["kept", "broken", "not meant", "not asked"]
    says: str
    detail: str = ""
    part: str = ""
    file: str = ""


@cache
def plugins_of(registry: Registry | None = None) -> Installed:
    """Return the installed plugins, loaded once a process, or those with other parts."""
    plugins = Installed()
    if registry is not None:
        plugins.registry = registry
    return plugins


def installed_registry() -> Registry:
    """Return the parts of every installed plugin."""
    return plugins_of().registry


class Suite:
    """The base of all suites; pytest asks every promise of a subclass in one test.

    Attributes:
        registry: Where parts are found; None is what is installed.
        last: Promises that are asked after those of subclasses.
        thorough: Those that take seconds, a pytest test of their own: ``-m "not slow"`` leaves
            them to ``cse check-plugin``.
    """

    registry: ClassVar[Registry | None] = None
    last: ClassVar[tuple[str, ...]] = ()
    thorough: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def installed(cls) -> Registry:
        """Return the registry of its parts."""
        return cls.registry or installed_registry()

    @classmethod
    def package(cls) -> str:
        """Return the package of what it asks, whose lines errors name."""
        return ""

    def test_promises(self) -> None:
        """Every promise is kept."""
        self._keeps([name for name in names_of(type(self)) if name not in self.thorough])

    @pytest.mark.slow
    def test_thorough_promises(self) -> None:
        """Those that take seconds are kept too."""
        self._keeps(self.thorough)

    def _keeps(self, names: Collection[str]) -> None:
        for asked in ask(type(self), names):
            assert asked.status != "broken", (
                f"{asked.name}\n  promised: {asked.says}\n  found: {asked.detail}"
            )


def ask(suite: type[Any], names: Collection[str] | None = None) -> Iterator[Asked]:
    """Yield the outcome of every promise of a suite, or of some whatever comes before them.

    What prints breaks its promise: stdout is for the results of commands.
    """
    broken = False
    for name in names_of(suite) if names is None else names:
        method = getattr(suite, _PREFIX + name)
        says = (inspect.getdoc(method) or "").split("\n\n")[0].replace("\n", " ")
        if broken and names is None:
            yield Asked(name, "not asked", says)
            continue
        detail, printed = "", io.StringIO()
        try:
            with redirect_stdout(printed):
                method(suite())
            if text := printed.getvalue():
                shown = truncate_repr(text, 60)
                detail = f"prints {shown} to stdout, where it spoils --json: log it, or leave it"
        except NotMeant as reason:
            status: Any = "not asked" if isinstance(reason, NotAsked) else "not meant"
            yield Asked(name, status, says, str(reason))
            continue
        except (AssertionError, PartError) as error:
            detail = str(error) or "an assertion without a text failed"
        except CseError as error:
            detail = error.line()
        except Exception as error:
            detail = f"{type(error).__name__}: {error} ({_place(error, suite.package())})"
        broken = broken or bool(detail)
        yield Asked(name, "broken" if detail else "kept", says, " ".join(detail.split()))


def _place(error: Exception, package: str) -> str:
    """Return the file and line of the innermost call of a package; else of all."""
    frames = [*traceback.walk_tb(error.__traceback__)][::-1]
    names = [frame.f_globals.get("__name__", "").partition(".")[0] for frame, _ in frames]
    if package and package not in names:
        return "raised by what it returned"
    frame, line = frames[names.index(package) if package else 0]
    return f"{Path(frame.f_code.co_filename).name}:{line}"


def failures(suite: type[Any], names: Collection[str] | None = None) -> dict[str, str]:
    """Return the broken promises of a suite with what was found: one at most unless some are named.

    Args:
        suite: A subclass of a suite with ``part`` (or ``distribution``, ``recipe``) set.
        names: Promises to ask, whatever comes before them; None is all up to the first broken.
    """
    return {item.name: item.detail for item in ask(suite, names) if item.status == "broken"}


def names_of(suite: type[Any]) -> list[str]:
    """Return the names of a suite's promises in order."""
    members = [name for base in reversed(suite.__mro__) for name in vars(base)]
    names = [name.removeprefix(_PREFIX) for name in members if name.startswith(_PREFIX)]
    first = [name for name in dict.fromkeys(names) if name not in suite.last]
    return [*first, *(name for name in suite.last if name in names)]
