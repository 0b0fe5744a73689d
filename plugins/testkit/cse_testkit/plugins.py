"""The suites of a whole plugin and of a command."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from packaging.requirements import Requirement

from cse_cli.plugins.installed_commands import Command, find_commands
from cse_cli.plugins.manager import load_plugins
from cse_cli.plugins.record_checks import NAME
from cse_core.records import ComponentSpec, DatasetSpec, ReporterSpec, SuiteSpec
from cse_core.registry.plugin_info import TOOLKIT, PluginInfo, canonical
from cse_core.runtime.loading import load_factory, package_path
from cse_testkit.promises import Suite

HEAVY = ("torch", "transformers", "datasets", "scipy", "sklearn", "pandas", "pyarrow")
"""What no ``plugin.py`` may import, directly or not."""
_DEFAULTS = """
from cse_cli.plugins.manager import load_plugins
for info in load_plugins(environ={}).infos:
    for part in info.parts if info.distribution == sys.argv[1] else ():
        options = part.default_options() if hasattr(part, "provided") else None
        if options is not None:
            part.provided(options), part.required(options)
"""


class PluginSuite(Suite):
    """What a plugin promises as a whole; its parts and recipes have suites of their own.

    ::

        class TestPlugin(PluginSuite):
            distribution = "cse-margin"

    Attributes:
        distribution: Name of the distribution, as pip shows it.
    """

    distribution: ClassVar[str]

    def infos(self) -> list[PluginInfo]:
        """Return what is known of the distribution's entry points; one at least."""
        wanted = canonical(self.distribution)
        found = [info for info in installed_plugins() if info.distribution == wanted]
        assert found, f"{self.distribution} brings no entry point of group cse"
        return found

    def promise_it_is_active(self) -> None:
        """It loads, its hooks and records are valid and bring something; it has a summary."""
        for info in self.infos():
            why = f"{info.reason}\n{info.traceback}"
            assert info.status == "active", f"{info.key} is {info.status}: {why}"
            assert info.parts, f"{info.key} returns no record"
            assert info.summary, f"{info.distribution} has no summary (description)"

    def promise_it_says_which_toolkit_it_needs(self) -> None:
        """Its dependencies have a range of versions of cse-toolkit."""
        if canonical(self.distribution) != TOOLKIT:
            needs = [Requirement(line) for line in distribution(self.distribution).requires or ()]
            ranges = [need.specifier for need in needs if canonical(need.name) == TOOLKIT]
            assert any(ranges), f"does not require {TOOLKIT} of a range of versions"

    def promise_its_records_import_nothing_heavy(self) -> None:
        """The module of each entry point, and what its records say of defaults, need no torch."""
        imports = [f"import {info.module.partition(':')[0]}" for info in self.infos()]
        check_light("\n".join([*imports, _DEFAULTS]), canonical(self.distribution))

    def promise_its_factories_are_there(self) -> None:
        """Every class and every file that a record names can be loaded."""
        for info in self.infos():
            for record in info.parts:
                if isinstance(record, ComponentSpec | DatasetSpec | SuiteSpec | ReporterSpec):
                    load_factory(record.factory)
                else:
                    package_path(record.path)

    def promise_its_packages_are_typed(self) -> None:
        """Each package has a ``py.typed``, so that type checkers see its annotations."""
        for folder in self._packages():
            assert (folder / "py.typed").is_file(), f"{folder.name} has no py.typed"

    def promise_it_imports_no_other_plugin(self) -> None:
        """No module of it imports a package of another plugin: parts meet in the core only."""
        own = (canonical(self.distribution), TOOLKIT)
        others = {
            info.module.partition(".")[0]
            for info in installed_plugins()
            if info.distribution not in own
        }
        for folder in self._packages():
            for path in sorted(folder.rglob("*.py")):
                foreign = sorted(set(_imported(path)) & others)
                assert not foreign, f"{path.name} imports {', '.join(foreign)}"

    def _packages(self) -> list[Path]:
        names = {info.module.partition(":")[0].partition(".")[0] for info in self.infos()}
        specs = [find_spec(name) for name in names]
        places = [spec.submodule_search_locations or () for spec in specs if spec is not None]
        return [Path(each) for found in places for each in found]


class CommandSuite(Suite):
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
        wanted = (self.command, canonical(self.distribution))
        found = [c for c in find_commands() if (c.name, c.info.distribution) == wanted]
        assert found, f"{self.distribution} has no entry point {self.command!r} in cse.commands"
        return found[0]

    def promise_it_is_described(self) -> None:
        """Its name is of lower-case words; distribution and record have a summary of one line."""
        command = self.found()
        words, summary = command.name.split(), command.spec().summary
        assert all(NAME.fullmatch(word) for word in words), f"{words} are not lower-case words"
        assert command.info.summary.strip(), f"{self.distribution} has no summary"
        assert summary.strip() and "\n" not in summary, f"its summary is {summary!r}: not one line"

    def promise_its_record_imports_nothing_heavy(self) -> None:
        """The module of its record is imported in a new process without torch."""
        check_light(f"import {self.found().point.module}", self.command)

    def promise_its_help_is_shown(self) -> None:
        """The factory is there, and ``cse NAME --help`` ends without an error."""
        from cse_cli.main import run

        record = self.found().spec()
        function = load_factory(record.factory)
        assert (function.__doc__ or "").strip(), f"{record.factory} has no docstring"
        assert run([*record.name.split(), "--help"]) == 0, f"cse {record.name} --help fails"


@cache
def installed_plugins() -> tuple[PluginInfo, ...]:
    """Return what became of every installed plugin, loaded once a process."""
    return load_plugins(environ={}).infos


def check_light(code: str, name: str) -> None:
    """Run code in a new process, which imports nothing heavy.

    Raises:
        AssertionError: If it does, or fails.
    """
    code = f"import sys\n{code}\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    words = [sys.executable, "-c", code, name]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr.strip()[-300:]
    assert not done.stdout.strip(), f"imports {done.stdout.strip()}"


def _imported(path: Path) -> Iterator[str]:
    """Yield the top-level packages that a module imports anywhere in its text."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
