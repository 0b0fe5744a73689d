"""What a suite of promises is, and how pytest and ``cse check-plugin`` ask them.

A suite is a class. Each of its methods ``promise_…`` asks one promise: its docstring says what is
promised, and what it raises says what was found. They are asked in order, those of the bases first,
and none after the first that is broken: what follows rests on it, so one mistake is one failure.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from cse_cli.api import Installed, Registry
from cse_core.errors import CseError, PartError

_PREFIX = "promise_"


class NotMeant(Exception):
    """What a promise raises that means nothing for this part; the text says why."""


@dataclass(frozen=True)
class Asked:
    """What became of a promise.

    Attributes:
        name: Of the promise.
        status: ``not meant`` for this part, ``not asked`` since one before it is broken.
        says: The promise in words.
        detail: What broke it, or why it is not meant.
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
    """

    registry: ClassVar[Registry | None] = None
    last: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def installed(cls) -> Registry:
        """Return the registry of its parts."""
        return cls.registry or installed_registry()

    def test_promises(self) -> None:
        """Every promise is kept."""
        for asked in ask(type(self)):
            assert asked.status != "broken", (
                f"{asked.name}\n  promised: {asked.says}\n  found: {asked.detail}"
            )


def ask(suite: type[Any], names: Collection[str] | None = None) -> Iterator[Asked]:
    """Yield the outcome of every promise of a suite, or of some whatever comes before them."""
    broken = False
    for name in names_of(suite) if names is None else names:
        method = getattr(suite, _PREFIX + name)
        says = (inspect.getdoc(method) or "").split("\n\n")[0].replace("\n", " ")
        if broken and names is None:
            yield Asked(name, "not asked", says)
            continue
        detail = ""
        try:
            method(suite())
        except NotMeant as reason:
            yield Asked(name, "not meant", says, str(reason))
            continue
        except (AssertionError, PartError) as error:
            detail = str(error) or "an assertion without a text failed"
        except CseError as error:
            detail = error.line()
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"({Path(place.filename).name}:{place.lineno})"
            detail = f"{type(error).__name__}: {error} {where}"
        broken = broken or bool(detail)
        yield Asked(name, "broken" if detail else "kept", says, " ".join(detail.split()))


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
