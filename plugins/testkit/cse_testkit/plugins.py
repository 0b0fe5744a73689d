"""The suite of a whole plugin."""

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

from cse_cli.plugins.manager import load_plugins
from cse_core.errors import CseError
from cse_core.records import ComponentSpec, DatasetSpec, Record, ReporterSpec, SuiteSpec
from cse_core.registry.plugin_info import TOOLKIT, PluginInfo, canonical
from cse_core.registry.registry import Registry
from cse_core.runtime.loading import load_factory, package_path
from cse_testkit.promises import BrokenPromise, after, failures, promise
from cse_testkit.record_suite import RecordSuite

HEAVY = ("torch", "transformers", "datasets", "scipy", "sklearn", "pandas", "pyarrow")
"""What no ``plugin.py`` may import, directly or not."""


class PluginSuite:
    """What a plugin promises as a distribution.

    A plugin's tests begin with::

        class TestPlugin(PluginSuite):
            distribution = "cse-mocose"

    Attributes:
        distribution: Name of the distribution that brings it.
    """

    distribution: ClassVar[str]

    def infos(self) -> tuple[PluginInfo, ...]:
        """Return its entry points and what became of them."""
        wanted = canonical(self.distribution)
        found = tuple(info for info in _loaded() if info.distribution == wanted)
        promise(bool(found), f"{self.distribution} brings no entry point of group cse")
        return found

    def test_it_is_active(self) -> None:
        """Every entry point is loaded, its hooks and records are valid."""
        for info in self.infos():
            promise(
                info.status == "active",
                f"{info.key} is {info.status}: {info.reason}\n{info.traceback}",
            )

    @after("test_it_is_active")
    def test_it_brings_something(self) -> None:
        """It returns a record at least, and its distribution has a summary."""
        for info in self.infos():
            promise(bool(info.parts), f"{info.key} returns no record")
            promise(bool(info.summary), f"{info.distribution} has no summary (description)")

    def test_it_says_which_toolkit_it_needs(self) -> None:
        """Its metadata requires cse-toolkit, with a version."""
        needs = [Requirement(text) for text in distribution(self.distribution).requires or ()]
        own = [need for need in needs if canonical(need.name) == TOOLKIT]
        if canonical(self.distribution) != TOOLKIT:
            promise(bool(own), f"it does not require {TOOLKIT}")
            promise(all(need.specifier for need in own), f"it requires {TOOLKIT} of any version")

    @after("test_it_is_active")
    def test_its_plugin_module_imports_nothing_heavy(self) -> None:
        """The module of each entry point is imported in a new process without torch."""
        for info in self.infos():
            module = info.module.partition(":")[0]
            no_output(without_heavy(f"import {module}"), module)

    @after("test_its_plugin_module_imports_nothing_heavy")
    def test_its_records_import_nothing_heavy(self) -> None:
        """What its records say of their default options is said without torch."""
        for info in self.infos():
            code = (
                "from cse_cli.plugins.manager import load_plugins\n"
                "for info in load_plugins(environ={}).infos:\n"
                f"    for part in info.parts if info.key == {info.key!r} else ():\n"
                "        options = part.default_options() if hasattr(part, 'provided') else None\n"
                "        if options is not None:\n"
                "            part.provided(options), part.required(options)"
            )
            no_output(without_heavy(code), f"the records of {info.key}")

    @after("test_it_is_active")
    def test_its_factories_are_there(self) -> None:
        """Every class and every file that a record names can be loaded."""
        for record in self._records():
            try:
                if isinstance(record, ComponentSpec | DatasetSpec | SuiteSpec | ReporterSpec):
                    load_factory(record.factory)
                else:
                    package_path(record.path)
            except CseError as error:
                raise BrokenPromise(f"{record.name}: {error}") from None

    @after("test_its_factories_are_there")
    def test_its_parts_keep_their_records_promises(self) -> None:
        """Options described, frozen and valid, tokens in the vocabulary, classes of their kind."""
        registry = Registry.from_plugins(_loaded())
        for record in self._records():
            if isinstance(record, ComponentSpec):
                name = f"{canonical(self.distribution)}/{record.name}"
                values = {"part": (record.kind, name), "registry": registry}
                suite = type("Record", (RecordSuite,), values)
                for text in failures(suite).values():
                    raise BrokenPromise(f"{record.kind} {record.name}: {text}")

    def test_its_packages_are_typed(self) -> None:
        """Each package has a ``py.typed``, so that type checkers see its annotations."""
        for folder in self._packages():
            promise((folder / "py.typed").is_file(), f"{folder.name} has no py.typed")

    def test_it_imports_no_other_plugin(self) -> None:
        """No module of it imports a package of another plugin: parts meet in the core only."""
        own = canonical(self.distribution)
        others = {
            info.module.partition(".")[0]
            for info in _loaded()
            if info.distribution not in (own, TOOLKIT)
        }
        for folder in self._packages():
            for path in sorted(folder.rglob("*.py")):
                foreign = set(_imported(path)) & others
                promise(not foreign, f"{path.name} imports {', '.join(sorted(foreign))}")

    def _records(self) -> Iterator[Record]:
        for info in self.infos():
            yield from info.parts

    def _packages(self) -> list[Path]:
        found = []
        for name in {info.module.partition(":")[0].partition(".")[0] for info in self.infos()}:
            spec = find_spec(name)
            found += [Path(each) for each in (spec and spec.submodule_search_locations) or ()]
        return found


@cache
def _loaded() -> tuple[PluginInfo, ...]:
    return load_plugins(environ={}).infos


def without_heavy(code: str) -> str:
    """Return code that prints which heavy modules are imported after it."""
    return f"import sys\n{code}\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"


def no_output(code: str, what: str) -> None:
    """Run code in a new process, which prints nothing.

    Raises:
        BrokenPromise: If it prints something or fails.
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    promise(done.returncode == 0, f"{what}: {done.stderr.strip()[-300:]}")
    promise(not done.stdout.strip(), f"{what}: imports {done.stdout.strip()}")


def _imported(path: Path) -> Iterator[str]:
    """Yield the top-level packages that a module imports anywhere in its text."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
