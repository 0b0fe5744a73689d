"""The record of a command of ``cse``, which an entry point of group ``cse.commands`` names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from cse_core.records import NamedSpec


class Panel(StrEnum):
    """Headings of ``cse --help``, in its order."""

    USE = "Train and use a model"
    COMPARE = "Compare and look inside"
    PAPERS = "Commands of one paper"
    PLUGINS = "Plugins and recipes"


@dataclass(frozen=True, kw_only=True)
class CommandSpec(NamedSpec):
    """A command of ``cse``, named by an entry point of group ``cse.commands``.

    Attributes:
        name: What a user types after ``cse``: ``"eval"``, ``"data fetch"``. The entry point
            has the same name, with dots for spaces.
        factory: ``"package.module:function"``, a function for ``typer.Typer.command``, or a
            ``typer.Typer`` with commands below this one; imported when the command runs.
        takes_choice: Whether it has the flags of ``cse train``, options of the chosen parts
            included.
        function: ``"package.module:function"`` that does the same from Python, called with the
            installed plugins, then with the arguments of ``cse.evaluate`` and the like.
        panel: Heading under which ``cse --help`` lists it.
        example: A command line that its help ends with.
    """

    factory: str
    takes_choice: bool = False
    function: str | None = None
    panel: Panel = Panel.COMPARE
    example: str = ""
