"""The suite of a whole distribution: its plugin, its packages, its commands."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cse_cli.api import PluginInfo
from cse_core.errors import CseError, did_you_mean, truncate_repr
from cse_core.hookspecs import COMPONENT_SPECS
from cse_core.loading import load_factory, package_path
from cse_core.records import ConfiguredSpec, Record, SourceSpec
from cse_testkit.doors import behind_the_doors, others_imported
from cse_testkit.promises import NotMeant, Suite, plugins_of
from cse_testkit.source_suite import SourceSuite
from cse_testkit.tiny import declared_in_project

TOOLKIT = "cse-toolkit"

HEAVY = ("torch", "transformers", "datasets", "scipy", "sklearn", "pandas", "pyarrow")
"""What neither a module of records nor one of options may import, directly or not."""
_LIGHT = f"""
import json, sys
from importlib import import_module
def check(name, *heavy):
    if found := [module for module in heavy if module in sys.modules]:
        sys.exit(f"{{name}} imports {{', '.join(found)}}")
asked = json.loads(sys.argv[1])
for name, modules in asked.items():
    [*map(import_module, modules)]
    check(name, "pydantic", *{HEAVY!r})
from cse_cli.api import Installed
for info in Installed().manager.infos:
    for part in info.parts if info.distribution in asked else ():
        options = part.default_options() if hasattr(part, "provides") else None
        if options is not None:
            part.declared("provides", options), part.declared("requires", options)
        check(info.distribution, *{HEAVY!r})
"""


def heavy_imports(modules: Mapping[str, Sequence[str]]) -> str:
    """Name the distribution whose modules or records import something heavy; "" where none do."""
    words = [sys.executable, "-c", _LIGHT, json.dumps(modules)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    if done.stdout and not done.returncode:
        return f"its modules print {truncate_repr(done.stdout, 60)} to stdout on import"
    return done.stderr.strip()[-300:] if done.returncode else ""


@cache
def distributions_by_module() -> Mapping[str, Sequence[str]]:
    """Return the installed distributions of each top-level module."""
    return packages_distributions()


def needs_of(name: str) -> set[str]:
    """Return a distribution with all that it and its extras need, and what these need."""
    needs, todo = {name}, [(name, True)]
    while todo:
        of, extras = todo.pop()
        try:
            lines = distribution(of).requires or ()
        except PackageNotFoundError:
            continue
        for need in map(Requirement, lines):
            other = canonicalize_name(need.name)
            asked = extras or need.marker is None or need.marker.evaluate({"extra": ""})
            if asked and other not in needs:
                needs.add(other)
                todo.append((other, bool(need.extras)))
    return needs


def _options_of(record: Record) -> Collection[str]:
    """Return what ``[tool.cse]`` may name of a record: options, or attributes of its suite."""
    if isinstance(record, ConfiguredSpec):
        return record.options_class.model_fields
    return SourceSuite.__annotations__ if isinstance(record, SourceSpec) else ()


def _check_known(
    where: str, table: Mapping[str, Any], known: Collection[str], of: type = object
) -> Iterable[tuple[str, Any]]:
    """Return the entries of a table.

    Raises:
        CseError: If one is not known, or its value is of another type than ``of``.
    """
    for name, value in table.items():
        if name not in known:
            raise CseError(
                "matches nothing", where=where, value=name, hint=did_you_mean(name, known)
            )
        if not isinstance(value, of):
            what = f"is not a {'table' if of is dict else 'list'}"
            raise CseError(what, where=f"{where}.{name}", value=value)
    return table.items()


class PluginSuite(Suite):
    """What a distribution promises as a whole; its parts and recipes have suites of their own.

    Attributes:
        distribution: Name of the distribution, as pip shows it.
        parts: Attributes of the suites of its parts by kind and name, as of ``part_suites``.
    """

    distribution: ClassVar[str]
    parts: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    last: ClassVar[tuple[str, ...]] = ("two_processes_train_as_one",)

    def infos(self) -> list[PluginInfo]:
        """Return the records of its entry points of group ``cse``."""
        name, commands = canonicalize_name(self.distribution), self.commands()
        infos = [info for info in plugins_of().manager.infos if info.distribution == name]
        # A plugin and a command may have one name, and so one key.
        return [info for info in infos if info not in [point.info for point in commands]]

    def commands(self) -> list[Any]:
        """Return its entry points of group ``cse.commands``."""
        name = canonicalize_name(self.distribution)
        return [point for point in plugins_of().commands.all if point.info.distribution == name]

    def modules(self) -> list[str]:
        """Return the modules of all of them."""
        modules = [info.module.partition(":")[0] for info in self.infos()]
        return [*modules, *(command.point.module for command in self.commands())]

    def promise_it_is_active(self) -> None:
        """It loads, its hooks and records are valid and bring something; it has a summary."""
        infos, commands = self.infos(), self.commands()
        assert infos or commands, f"{self.distribution} brings no entry point of cse"
        for info in infos:
            why = f"{info.key} is {info.status}: {info.reason}\n{info.traceback}"
            assert info.status == "active", why
            assert info.parts, f"{info.key} returns no record"
        said = [*infos, *(point.info for point in commands), *(point.spec() for point in commands)]
        for summary in (record.summary for record in said):
            assert summary.strip() and "\n" not in summary, f"no summary of one line: {summary!r}"

    def promise_it_says_which_toolkit_it_needs(self) -> None:
        """Its dependencies have a range of versions of cse-toolkit."""
        if canonicalize_name(self.distribution) == TOOLKIT:
            raise NotMeant("it is the toolkit")
        needs = [Requirement(line) for line in distribution(self.distribution).requires or ()]
        ranges = [need.specifier for need in needs if canonicalize_name(need.name) == TOOLKIT]
        ends = {clause.operator for clauses in ranges for clause in clauses} & {"<", "~=", "=="}
        assert ends, f'no upper bound for {TOOLKIT}: dependencies = ["{TOOLKIT}>=0.1,<0.2"]'

    def promise_its_factories_are_there(self) -> None:
        """Every class, function and file that a record names is there; options are of its kind."""
        records = [record for info in self.infos() for record in info.parts]
        for record in [*records, *(command.spec() for command in self.commands())]:
            if hasattr(record, "factory"):
                load_factory(record.factory)
                getattr(record, "options_class", None)
            elif hasattr(record, "path"):
                package_path(record.path)
            getattr(getattr(record, "paper", ""), "bibtex", "")

    def promise_its_declarations_match_its_parts(self) -> None:
        """Each entry of ``[tool.cse]`` in ``pyproject.toml`` is of a part, and of its options."""
        path, declared = declared_in_project(self.distribution)
        where = f"{path}: tool.cse"
        _check_known(where, declared, ("columns", "options", "unchecked"), dict)
        options, unchecked = (declared.get(table, {}) for table in ("options", "unchecked"))
        parts = [record for info in self.infos() for record in info.parts]
        for kind, given in _check_known(
            f"{where}.options", options, {part.kind for part in parts}, dict
        ):
            known = {part.name: part for part in parts if part.kind == kind}
            for name, values in _check_known(f"{where}.options.{kind}", given, known, dict):
                _check_known(f"{where}.options.{kind}.{name}", values, _options_of(known[name]))
        named = {f"{part.kind}.{part.name}": part for part in parts}
        for name, silent in _check_known(f"{where}.unchecked", unchecked, named, list):
            known_names = ["gradient", *_options_of(named[name])]
            _check_known(f"{where}.unchecked.{name}", dict.fromkeys(silent), known_names)

    def promise_its_records_import_nothing_heavy(self) -> None:
        """No module of an entry point needs pydantic or torch, nor do modules of options torch."""
        name = canonicalize_name(self.distribution)
        assert not (heavy := heavy_imports({name: self.modules()})), heavy

    def promise_it_imports_the_doors_alone(self) -> None:
        """Of the toolkit it imports ``cse``, ``cse_cli.api`` and the root of ``cse_core``.

        It imports no other plugin: what two share is a capability.
        """
        # The toolkit's own are of one version with the whole core.
        for package in {module.partition(".")[0] for module in self.modules()} - {"cse_defaults"}:
            wrong = [f"{place} {name}" for name, place in behind_the_doors(package).items()]
            assert not wrong, f"imports what may change in any version: {', '.join(wrong[:5])}"

    def promise_its_dependencies_are_declared(self) -> None:
        """What it imports of others is among its dependencies and extras, or a need of these."""
        declared = needs_of(canonicalize_name(self.distribution))
        for package in {module.partition(".")[0] for module in self.modules()}:
            for module, place in others_imported(package).items():
                brought = {canonicalize_name(n) for n in distributions_by_module().get(module, ())}
                assert brought & declared or not brought, (
                    f"{place} imports {module}, and dependencies lack {' or '.join(brought)}"
                )

    def promise_its_packages_are_typed(self) -> None:
        """Each package has a ``py.typed``, so that type checkers see its annotations."""
        for name in {module.partition(".")[0] for module in self.modules()}:
            for folder in getattr(find_spec(name), "submodule_search_locations", None) or ():
                assert Path(folder, "py.typed").is_file(), f"{name} has no py.typed"

    def promise_its_commands_show_their_help(self) -> None:
        """``cse NAME --help`` of each of its commands ends without an error."""
        for command in self.commands():
            words = [str(Path(sys.executable).with_name("cse")), *command.name.split(), "--help"]
            done = subprocess.run(words, capture_output=True, text=True)
            assert not done.returncode, f"cse {command.name} --help fails: {done.stderr[-300:]}"

    def promise_two_processes_train_as_one(self) -> None:
        """Two processes end with the losses and states of one, or the core refuses to train."""
        kinds = COMPONENT_SPECS.keys() - {"metric"}
        trained: list[Any] = [
            (record.kind, f"{info.distribution}/{record.name}")
            for info in self.infos()
            for record in info.parts
            if record.kind in kinds
        ]
        if not trained:
            raise NotMeant("it brings no part that trains")
        from cse_testkit.processes import difference

        assert not (change := difference(trained, self.parts)), change
