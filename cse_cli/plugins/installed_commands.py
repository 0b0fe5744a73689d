"""Commands that distributions bring: found in metadata, imported only when one is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.metadata import Distribution, EntryPoint
from typing import TYPE_CHECKING, Any

import typer

from cse_cli.plugins.discovery import (
    COMMANDS_GROUP,
    find_entry_points,
    update_command,
    version_mismatch,
)
from cse_cli.terminal.console import literal
from cse_core.errors import CseError
from cse_core.registry.plugin_info import canonical
from cse_core.specs import GROUP

if TYPE_CHECKING:
    from cse_core.records import CommandSpec
    from cse_core.registry.plugin_info import PluginInfo


@dataclass(frozen=True)
class Command:
    """An installed command, as the metadata describes it.

    Attributes:
        name: What a user types after ``cse``: ``eval``, ``data fetch``.
        distribution: Name of the distribution that brings it.
        version: Version of that distribution.
        summary: The distribution's one-line summary.
        point: What to load.
        dist: The distribution.
        blocked_by: What leaves it out, such as ``--no-plugin bench``; empty where nothing does.
    """

    name: str
    distribution: str
    version: str
    summary: str
    point: EntryPoint
    dist: Distribution = field(repr=False)
    blocked_by: str = ""

    @property
    def label(self) -> str:
        """Return distribution and version, as messages name it."""
        return f"{self.distribution} {self.version}".strip()

    def spec(self) -> CommandSpec:
        """Load its record, which imports nothing heavy.

        Raises:
            CseError: If it is made for another version of the toolkit, cannot be imported, or is
                no record of this command.
        """
        from cse_core import __version__
        from cse_core.records import CommandSpec

        where = f"cse {self.name}"
        mismatch = version_mismatch(self.dist)
        if mismatch is not None:
            wanted, too_old = mismatch
            raise CseError(
                f"{self.label} needs {wanted}, installed is {__version__}",
                where=where,
                hint=update_command(wanted if too_old else self.distribution),
            )
        try:
            record = self.point.load()
        except Exception as error:
            raise CseError(
                f"{self.label} cannot be imported: {type(error).__name__}: {error}",
                where=where,
                hint=update_command(self.distribution),
            ) from error
        if not isinstance(record, CommandSpec) or record.name != self.name:
            raise CseError(
                f"{self.point.value} of {self.label} is not a CommandSpec of this name",
                where=where,
                hint=update_command(self.distribution),
            )
        return record


def find_commands(left_out: Sequence[str] = ()) -> tuple[Command, ...]:
    """Return the installed commands by name, without importing any.

    Args:
        left_out: Plugins that ``--no-plugin`` named; ``CSE_DISABLE_PLUGINS`` counts too.
    """
    variable = os.environ.get("CSE_DISABLE_PLUGINS", "")
    blocking = {name: f"--no-plugin {name}" for name in left_out}
    blocking |= {n: f"CSE_DISABLE_PLUGINS={variable}" for n in map(str.strip, variable.split(","))}
    blocking.pop("", None)
    commands = [
        Command(
            name=found.info.name.replace(".", " "),
            distribution=found.info.distribution,
            version=found.info.version,
            summary=found.info.summary,
            point=found.entry_point,
            dist=found.dist,
            blocked_by=_blocked_by(found.dist, found.info.distribution, blocking),
        )
        for found in find_entry_points(COMMANDS_GROUP)
        if found.dist is not None
    ]
    return tuple(sorted(commands, key=lambda command: (command.name, command.distribution)))


def _blocked_by(dist: Distribution, name: str, blocking: Mapping[str, str]) -> str:
    """Return what leaves a distribution out by its name, an entry point's or a key."""
    if not blocking:
        return ""
    points = [point.name for point in dist.entry_points if point.group in (GROUP, COMMANDS_GROUP)]
    own = {"all", name, *map(canonical, points), *(f"{name}:{point}" for point in points)}
    return next((why for each, why in blocking.items() if {each, canonical(each)} & own), "")


class Commands:
    """The installed commands; the record of one is loaded when the command line asks for it.

    Args:
        left_out: Plugins that ``--no-plugin`` named.
        own: Names of the command line's own commands, which none of these replaces.
    """

    def __init__(self, left_out: Sequence[str] = (), own: Collection[str] = ()) -> None:
        self.all = find_commands(left_out)
        self.usable: dict[str, list[Command]] = {}
        for command in self.all:
            if not command.blocked_by and command.name not in own:
                self.usable.setdefault(command.name, []).append(command)

    def chosen(self, words: Sequence[str]) -> CommandSpec | None:
        """Return the record of the command that a command line asks for, None of any other.

        Raises:
            CseError: If it cannot be loaded, or two distributions bring it.
        """
        path = [word for word in words if not word.startswith("-")]
        for length in range(len(path), 0, -1):
            found = self.usable.get(" ".join(path[:length]), [])
            if len(found) > 1:
                raise CseError(
                    f"{' and '.join(each.label for each in found)} both provide this command",
                    where=f"cse {found[0].name}",
                    hint=f"leave one out: --no-plugin {found[-1].distribution}",
                )
            if found:
                return found[0].spec()
        return None

    def function(self, name: str) -> Callable[..., Any]:
        """Return what a command's record names for Python.

        Raises:
            CseError: If the command is unknown, or only for the shell.
        """
        from cse_core.runtime.loading import load_factory

        spec = self.chosen(name.split())
        if spec is None:
            raise CseError(f"no such command {name!r}", hint=self.missing(name))
        if spec.function is None:
            hint = f"run `cse {name}` in a shell"
            raise CseError("has no function for Python", where=f"cse {name}", hint=hint)
        found: Callable[..., Any] = load_factory(spec.function, where=f"cse {name}")
        return found

    def add_to(
        self,
        app: typer.Typer,
        chosen: CommandSpec | None,
        function: Any,
        panel: str,
        only: str | None = None,
    ) -> None:
        """Add every command to an application: the chosen one, of others a line of help.

        Args:
            app: The application; it or a group of it takes the command.
            chosen: The record of the command that is run, if it is one of these.
            function: What the record names.
            panel: Heading of the commands beside the application's own.
            only: First word of those to add; by default all are.
        """
        for name, found in self.usable.items():
            *groups, last = name.split()
            if only not in (None, [*groups, last][0]):
                continue
            holder, heading = app, panel
            for group in groups:
                holder, heading = _group(holder, group, heading), ""
            is_chosen = chosen is not None and name == chosen.name
            if is_chosen and isinstance(function, typer.Typer):
                holder.add_typer(function, name=last, rich_help_panel=heading or None)
            else:
                help_ = None if is_chosen else literal(found[0].summary)
                add = holder.command(last, help=help_, rich_help_panel=heading or None)
                add(function if is_chosen else _unloaded)

    def missing(self, path: str) -> str:
        """Return how to get a command that is not there, or an empty text."""
        from cse_cli.plugins.directory import known_commands

        left_out = {each.name: f"it is left out by {each.blocked_by}" for each in self.all}
        known = {
            name: f"it is a command of {owner}, not installed: pip install {owner}"
            for name, owner in known_commands().items()
        } | left_out
        close = get_close_matches(path, known.keys() - self.usable.keys(), n=1, cutoff=0.75)
        if not close:
            return ""
        return (
            known[close[0]] if close[0] == path else f"did you mean {close[0]}? {known[close[0]]}"
        )

    def of(self, distribution: str) -> list[str]:
        """Return the names of a distribution's commands."""
        return [each.name for each in self.all if each.distribution == distribution]

    def plugins(self, known: Sequence[PluginInfo]) -> Iterator[PluginInfo]:
        """Yield what is known of distributions that bring commands and no plugin.

        Args:
            known: The plugins.
        """
        from dataclasses import replace

        from cse_cli.plugins.discovery import describe

        distributions_ = {info.distribution for info in known}
        for command in self.all:
            info = describe(command.point, command.dist).info
            if info.distribution in distributions_:
                continue
            if command.blocked_by:
                fix = f"run without {command.blocked_by}"
                if not command.blocked_by.startswith("--"):
                    fix = "unset CSE_DISABLE_PLUGINS"
                reason = f"left out by {command.blocked_by}"
                info = replace(info, status="blocked", reason=reason, fix=fix)
            yield info


def _group(app: typer.Typer, name: str, panel: str) -> typer.Typer:
    """Return a group of an application, made where unknown name."""
    for group in app.registered_groups:
        if group.name == name and group.typer_instance is not None:
            return group.typer_instance
    made = typer.Typer(no_args_is_help=True)
    app.add_typer(made, name=name, rich_help_panel=panel or None)
    return made


def _unloaded() -> None:
    raise AssertionError("a command that was not asked for")
