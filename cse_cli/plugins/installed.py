"""The installed plugins, loaded when first used."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from cse_cli.plugins.installed_commands import Commands
from cse_cli.terminal.console import warn

if TYPE_CHECKING:
    from cse_core.records import SourceSpec, StudySpec, SuiteSpec
    from cse_core.registry.manager import PluginManager
    from cse_core.registry.plugin_info import PluginInfo
    from cse_core.registry.registry import Registered, Registry
    from cse_core.suites import Suite, SuiteFiles
    from cse_core.texts import DataOptions
    from cse_defaults.texts import Data

OWN_COMMANDS = (
    *("list-plugins", "show-plugin", "list-recipes", "show-recipe"),
    *("train", "encode", "data"),
    *(f"data {name}" for name in ("list", "stats", "show", "fetch", "show-pairs")),
)
"""Commands that no distribution replaces."""


class Installed:
    """The installed plugins; every command finds one in its context.

    Args:
        left_out: Plugins that ``--no-plugin`` named; they are never imported.
    """

    def __init__(self, left_out: Sequence[str] = ()) -> None:
        self.left_out = tuple(left_out)
        self._read: dict[str, Data] = {}

    @cached_property
    def commands(self) -> Commands:
        """Return the commands that distributions bring; none is imported."""
        return Commands(self.left_out, OWN_COMMANDS)

    @cached_property
    def manager(self) -> PluginManager:
        """Load the plugins, and name distributions that bring commands alone beside them.

        Warns of names to leave out that none of them has.
        """
        from cse_core.errors import did_you_mean, truncate
        from cse_core.registry.discovery import is_meant, left_out_by
        from cse_core.registry.manager import load_plugins

        manager = load_plugins(self.left_out)
        infos = (*manager.infos, *self.commands.plugins(manager.infos))
        manager.infos = tuple(sorted(infos, key=lambda info: (info.distribution, info.name)))
        infos += tuple(command.info for command in self.commands.all)
        names = left_out_by(self.left_out)
        self.unmatched = [n for n in names if not any(is_meant(info, n) for info in infos)]
        for name in self.unmatched:
            hint = did_you_mean(name, {info.name for info in manager.infos})
            warn(f"--no-plugin {truncate(name, 100)}: no installed plugin has this name; {hint}")
        return manager

    def leave_out_again(self) -> None:
        """Leave the same plugins out of what this process loads again, and of what it starts."""
        from cse_core.registry.discovery import DISABLE_VARIABLE, left_out_by

        if self.left_out:
            os.environ[DISABLE_VARIABLE] = ",".join(left_out_by(self.left_out))

    @cached_property
    def registry(self) -> Registry:
        """Return the parts of the loaded plugins."""
        from cse_cli.plugins.directory import known_parts
        from cse_cli.plugins.index import who_has
        from cse_core.registry.registry import Registry

        return Registry.from_plugins(self.manager.infos, known_parts(), who_has)

    @cached_property
    def datasets(self) -> dict[str, SourceSpec]:
        """Return the installed data sets by name."""
        return {name: source.spec for name, source in self.registry.datasets().items()}

    @property
    def suites(self) -> dict[str, SuiteSpec]:
        """Return the installed suites that have files, in the order of their records."""
        from cse_core.records import SuiteSpec

        return {
            record.name: record
            for info in self.manager.infos
            for record in info.parts
            if isinstance(record, SuiteSpec) and record.dev != "rows"
        }

    @property
    def studies(self) -> dict[str, tuple[StudySpec, PluginInfo]]:
        """Return the installed studies by name, each with the plugin that brings it."""
        from cse_core.records import StudySpec

        return {
            record.name: (record, info)
            for info in self.manager.infos
            for record in info.parts
            if isinstance(record, StudySpec)
        }

    def locate(self, suite: str, folder: Path) -> SuiteFiles:
        """Locate the files of a suite; one that is not installed has none.

        Raises:
            CseError: If its class cannot be imported.
        """
        from cse_core.loading import load_factory
        from cse_core.suites import SuiteFiles

        if suite not in self.suites:
            return SuiteFiles({})
        made: Suite = load_factory(self.suites[suite].factory, where=f"suite {suite}")()
        return made.locate(folder)

    def read(self, options: DataOptions) -> Data:
        """Read the data that ``data.*`` names, once in a command."""
        from cse_defaults.texts import read_data

        key = options.model_dump_json()
        if key not in self._read:
            self._read[key] = read_data(options, self.registry)
        return self._read[key]

    def owners(self, words: Sequence[str]) -> dict[str, str]:
        """Return the plugins by their packages, but for that whose command runs."""
        if "manager" not in vars(self):
            return {}
        command = self.commands.chosen(words)
        packages = {
            info.module.partition(".")[0]: f"{info.distribution} {info.version}".strip()
            for info in self.manager.infos
        }
        if command is not None:  # whose author is to see the traceback
            packages.pop(command.factory.partition(".")[0], None)
        return packages

    def warn_of_failed(self) -> None:
        """Warn of plugins that could not be loaded and were not left out."""
        for info in self.manager.infos:
            if info.status == "broken":
                warn(f"plugin {info.key} is {info.status}: {info.reason}; {info.fix}")


def installed(context: typer.Context) -> Installed:
    """Return the plugins of a command's context."""
    return cast(Installed, context.find_object(Installed) or Installed())


def about(found: Registered[Any], field: str) -> dict[str, Any]:
    """Describe a record for JSON, with one field of its spec and the plugin that brings it."""
    entry = {"name": found.name, "summary": found.spec.summary, field: getattr(found.spec, field)}
    return {**entry, "distribution": found.distribution, "version": found.version}


def facts(info: PluginInfo) -> dict[str, Any]:
    """Describe a plugin without its parts, as data that JSON can hold."""
    names = ("key", "name", "distribution", "version", "summary", "module", "status", "reason")
    return {name: getattr(info, name) for name in (*names, "fix")} | {"hooks": list(info.hooks)}
