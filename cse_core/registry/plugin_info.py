"""What is known about an installed plugin, whether it could be loaded or not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from cse_core.capabilities import Need
from cse_core.records import Record

TOOLKIT = "cse-toolkit"
"""Distribution of the core and of the built-in parts, which are meant where others share a name."""
Status = Literal["active", "blocked", "broken"]
"""What became of an entry point.

active: loaded, all its parts can be used. blocked: the user switched it off, it was not imported.
broken: it raised, did not return valid records, or is made for another version of cse-toolkit.
"""


@dataclass(frozen=True, kw_only=True)
class PluginInfo:
    """An entry point of group ``cse`` and what became of it.

    Attributes:
        key: ``distribution:entry-point``; ``name`` is the entry point's.
        module: What the entry point names, ``"package.module"`` or ``"package.module:object"``.
        reason: Why it is not simply active, in one line; empty when it is.
        fix: What to type to fix it; empty when it is active.
        hooks: Those that it implements; ``parts`` are the records that they returned.
        traceback: Where it raised, for authors; empty unless it did.
    """

    key: str
    name: str
    distribution: str
    version: str
    summary: str
    module: str
    status: Status = "active"
    reason: str = ""
    fix: str = ""
    hooks: tuple[str, ...] = ()
    parts: tuple[Record, ...] = ()
    traceback: str = ""

    @property
    def label(self) -> str:
        """Return distribution and version, as messages name it."""
        return f"{self.distribution} {self.version}".strip()


@dataclass(frozen=True)
class KnownPart:
    """A part that need not be installed, and the distribution that brings it.

    ``provides`` are the capabilities that it provides with default options; ``dev`` is that of a
    suite that reads dev sets. ``published`` says whether a package index has the distribution.
    """

    kind: str
    name: str
    distribution: str
    provides: tuple[Need, ...] = ()
    published: bool = False

    @property
    def install(self) -> str:
        """Say how to install it: no command for a name that anybody might register."""
        return f"{'pip ' if self.published else ''}install {self.distribution}"


def canonical(name: str) -> str:
    """Return a distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()
