"""Commands that distributions bring: found in metadata, imported only when one is asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib.metadata import EntryPoint
from typing import Any

import typer

from cse_cli.terminal.console import literal
from cse_core.errors import CseError
from cse_core.hookspecs import GROUP
from cse_core.records import CommandSpec
from cse_core.registry.discovery import (
    COMMANDS_GROUP,
    blocked,
    describe,
    find_entry_points,
    left_out_by,
    update_command,
)
from cse_core.registry.plugin_info import PluginInfo


@dataclass(frozen=True)
class Command:
    """An installed command, as the metadata describes it.

    Attributes:
        name: What a user types after ``cse``: ``eval``, ``data fetch``.
        point: What to load.
        info: The same, who brings it, and whether it is left out.
    """

    name: str
    point: EntryPoint
    info: PluginInfo

    def spec(self) -> CommandSpec:
        """Load its record, which imports nothing heavy."""
        where, hint = f"cse {self.name}", update_command(self.info.distribution)
        try:
            record = self.point.load()
        except Exception as error:
            what = f"{self.info.label} cannot be imported: {type(error).__name__}: {error}"
            raise CseError(what, where=where, hint=hint) from error
        if not isinstance(record, CommandSpec) or record.name != self.name:
            what = f"{self.point.value} of {self.info.label} is not a CommandSpec of this name"
            raise CseError(what, where=where, hint=hint)
        return record

    def help_line(self) -> tuple[str, str]:
        """Return its line of help and its panel; what its distribution says if it is broken."""
        try:
            record = self.spec()
        except CseError:
            return self.info.summary, "Broken commands"
        return f"{record.summary[:1].upper()}{record.summary[1:]}.", record.panel


def find_commands(left_out: Sequence[str] = ()) -> tuple[Command, ...]:
    """Return the installed commands by name, importing none; ``CSE_DISABLE_PLUGINS`` counts too."""
    blocking = left_out_by(left_out)
    commands = []
    for point in find_entry_points(COMMANDS_GROUP):
        info = describe(point)
        if blocking and point.dist is not None:  # by any name of its distribution
            beside = [p for p in point.dist.entry_points if p.group in (GROUP, COMMANDS_GROUP)]
            left = filter(None, (blocked(describe(other), blocking) for other in beside))
            for why in [*left][:1]:
                info = replace(info, status="blocked", reason=why.reason, fix=why.fix)
        commands.append(Command(point.name.replace(".", " "), point, info))
    return tuple(sorted(commands, key=lambda command: (command.name, command.info.distribution)))


class Commands:
    """The installed commands; the record of one is loaded when the command line asks for it.

    None of them replaces one of ``own``, the names of the command line's own commands.
    """

    def __init__(self, left_out: Sequence[str] = (), own: Collection[str] = ()) -> None:
        self.all, self.own = find_commands(left_out), own
        self.usable: dict[str, list[Command]] = {}
        for command in self.all:
            if command.info.status == "active" and command.name not in own:
                self.usable.setdefault(command.name, []).append(command)

    def chosen(self, words: Sequence[str]) -> CommandSpec | None:
        """Return the record of the command that a command line asks for, None of any other."""
        path = [word for word in words if not word.startswith("-")]
        for length in range(len(path), 0, -1):
            owners = self.usable.get(" ".join(path[:length]), [])
            if len(owners) > 1:
                raise CseError(
                    f"{' and '.join(item.info.label for item in owners)} both provide this command",
                    where=f"cse {owners[0].name}",
                    hint=f"leave one out: --no-plugin {owners[-1].info.distribution}",
                )
            if owners:
                return owners[0].spec()
        return None

    def known(self, words: Sequence[str]) -> bool:
        """Tell whether a command line asks for a command, the command line's own or another."""
        first = {name.split()[0] for name in self.own}
        return bool(first.intersection(words[:1])) or self.chosen(words) is not None

    def function(self, name: str) -> Callable[..., Any]:
        """Load the Python function of a command; some are for the shell only."""
        from cse_core.loading import load_factory

        spec = self.chosen(name.split())
        if spec is None:
            raise CseError(f"no such command {name!r}", hint=self.missing(name))
        if spec.function is None:
            hint = f"run `cse {name}` in a shell"
            raise CseError("has no function for Python", where=f"cse {name}", hint=hint)
        loaded: Callable[..., Any] = load_factory(spec.function, where=f"cse {name}")
        return loaded

    def add_lines(self, app: typer.Typer, only: str | None = None) -> None:
        """Add a line of help for every command to an application; ``only`` is a first word."""
        for name, owners in self.usable.items():
            first, *more = name.split()
            if only in (None, first) and not (more and first in self.usable):  # its help names it
                summary, panel = owners[0].help_line()
                holder, last, heading = _holder(app, name, panel, owners[0].info.summary)
                add = holder.command(last, help=literal(summary), rich_help_panel=heading)
                add(_unloaded)

    def add_chosen(self, app: typer.Typer, chosen: CommandSpec, function: Any) -> None:
        """Add the command that is run to an application, with what its record names."""
        holder, last, _ = _holder(app, chosen.name, "", "")
        if isinstance(function, typer.Typer):
            holder.add_typer(function, name=last)
        else:
            example = f"Example: {chosen.example}" if chosen.example else None
            holder.command(last, epilog=example)(function)

    def missing(self, path: str) -> str:
        """Explain how to get a missing command, or return an empty text."""
        from cse_cli.plugins.directory import known_commands
        from cse_cli.plugins.index import names, who_has

        left_out = {command.name: f"it is {command.info.reason}" for command in self.all}
        known = {
            name: f"it is a command of {owner}, not installed: "
            f"{'pip ' if owner in names() else ''}install {owner}"
            for name, owner in known_commands().items()
        } | left_out
        close = get_close_matches(path, known.keys() - self.usable.keys(), n=1, cutoff=0.75)
        if not close:
            return who_has(path, command=True)
        return (
            known[close[0]] if close[0] == path else f"did you mean {close[0]}? {known[close[0]]}"
        )

    def of(self, distribution: str) -> list[str]:
        """Return the names of a distribution's commands."""
        return [item.name for item in self.all if item.info.distribution == distribution]

    def plugins(self, known: Sequence[PluginInfo]) -> Iterator[PluginInfo]:
        """Yield what is known of distributions that bring commands and none of these plugins."""
        distributions = {info.distribution for info in known}
        for item in self.all:
            if item.info.distribution not in distributions:
                distributions.add(item.info.distribution)
                yield item.info


def _holder(
    app: typer.Typer, name: str, panel: str, help_: str
) -> tuple[typer.Typer, str, str | None]:
    """Return the app that takes a command, its last word, and its heading in that app."""
    *groups, last = name.split()
    for number, group in enumerate(groups):
        app = _group(app, group, panel if number == 0 else "", help_)
    return app, last, None if groups else panel or None


def _group(app: typer.Typer, name: str, panel: str, help_: str) -> typer.Typer:
    """Return a group of an application, made where unknown name."""
    for group in app.registered_groups:
        if group.name == name and group.typer_instance is not None:
            return group.typer_instance
    made = typer.Typer(no_args_is_help=True, help=literal(help_))
    app.add_typer(made, name=name, rich_help_panel=panel or None)
    return made


def _unloaded() -> None:
    raise AssertionError("a command that was not asked for")
