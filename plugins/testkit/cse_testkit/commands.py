"""The suite of commands."""

from __future__ import annotations

from typing import ClassVar

from cse_cli.plugins.installed_commands import Command, find_commands
from cse_cli.plugins.record_checks import NAME
from cse_core.errors import CseError
from cse_core.records import CommandSpec
from cse_core.registry.plugin_info import canonical
from cse_core.runtime.loading import load_factory
from cse_testkit.plugins import no_output, without_heavy
from cse_testkit.promises import BrokenPromise, promise


class CommandSuite:
    """What a command promises: found by metadata, light until it is run, with a help of its own.

    ::

        class TestCount(CommandSuite):
            distribution = "cse-count"
            command = "count"

    Attributes:
        distribution: Name of the distribution that brings it.
        command: What a user types after ``cse``, such as ``data fetch``.
    """

    distribution: ClassVar[str]
    command: ClassVar[str]

    def found(self) -> Command:
        """Return the command as the metadata describes it."""
        wanted = canonical(self.distribution)
        found = [
            each
            for each in find_commands()
            if each.name == self.command and canonical(each.distribution) == wanted
        ]
        promise(bool(found), f"{self.distribution} has no entry point {self.command!r} in "
                             "group cse.commands")  # fmt: skip
        return found[0]

    def record(self) -> CommandSpec:
        """Return its record."""
        try:
            return self.found().spec()
        except CseError as error:
            raise BrokenPromise(str(error)) from None

    def test_its_metadata_is_enough_for_a_line_of_help(self) -> None:
        """Its name is of lower-case words, and its distribution has a summary."""
        words = self.found().name.split()
        promise(all(NAME.fullmatch(word) for word in words), f"{words} are not lower-case words")
        promise(bool(self.found().summary.strip()), f"{self.distribution} has no summary")

    def test_its_record_is_valid(self) -> None:
        """The entry point names a ``CommandSpec`` of its name, with a summary of one line."""
        summary = self.record().summary
        promise(bool(summary.strip()), "the summary is empty")
        promise("\n" not in summary, "the summary has more than one line")

    def test_its_record_imports_nothing_heavy(self) -> None:
        """The module of its record is imported in a new process without torch."""
        module = self.found().point.module
        no_output(without_heavy(f"import {module}"), module)

    def test_its_help_is_shown(self) -> None:
        """The factory is there, and ``cse NAME --help`` ends without an error."""
        from cse_cli.main import run

        record = self.record()
        try:
            function = load_factory(record.factory)
        except CseError as error:
            raise BrokenPromise(str(error)) from None
        promise(bool((function.__doc__ or "").strip()), f"{record.factory} has no docstring")
        promise(run([*record.name.split(), "--help"]) == 0, f"cse {record.name} --help fails")
