"""What ``cse check-plugin`` asks of an installed distribution: the promises of the suites."""

from __future__ import annotations

import inspect
import json
import os
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.message import Message
from importlib.metadata import Distribution, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement

from cse_cli.plugins.installed_commands import Command
from cse_cli.plugins.manager import SLOW
from cse_core.errors import CseError
from cse_core.recipes.reading import read_toml
from cse_core.records import ComponentSpec, RecipeSpec, Record, ReporterSpec, StudySpec, SuiteSpec
from cse_core.registry.plugin_info import NOUNS, TOOLKIT, PluginInfo, canonical
from cse_core.registry.registry import Registered, Registry
from cse_core.runtime.loading import load_factory, package_path
from cse_testkit.checks import suite_of
from cse_testkit.commands import CommandSuite
from cse_testkit.installed import installed_registry
from cse_testkit.matrix import pairs, try_pair
from cse_testkit.plugins import PluginSuite
from cse_testkit.promises import ask
from cse_testkit.recipes import RecipeSuite
from cse_testkit.record_suite import RecordSuite
from cse_testkit.reporters import ReporterSuite


@dataclass(frozen=True)
class Checked:
    """What became of a promise of a distribution.

    Attributes:
        part: Whose promise: ``loss margin``, ``recipe margin``, ``pair loss.margin + aug.fgsm``.
        name: Of the promise, that of the suite's test.
        ok: Whether it is kept; None where it was not asked.
        detail: What broke it, or why it was not asked.
        file: Where to fix it.
        says: The promise in words.
    """

    part: str
    name: str
    ok: bool | None
    detail: str = ""
    file: str = ""
    says: str = ""


def check(
    infos: Sequence[PluginInfo],
    commands: Sequence[Command] = (),
    seconds: float = 0.0,
    *,
    with_pairs: bool = True,
) -> Iterator[Checked]:
    """Yield what becomes of every promise of an installed distribution.

    Args:
        infos: Its entry points, one at least, as the plugin manager loaded them.
        commands: Its commands.
        seconds: Processor time that loading it took.
        with_pairs: Whether its parts are tried with every other installed one.
    """
    name = infos[0].distribution
    module = _file_of(infos[0].module)
    mine = any(info.hooks or info.reason for info in infos)
    if mine:
        suite = type("Plugin", (PluginSuite,), {"distribution": name})
        yield from _asked(suite, "plugin", module)
    yield from published(distribution(name))
    if seconds > SLOW:
        took = f"{1000 * seconds:.0f} ms, more than {1000 * SLOW:.0f}: what does it import?"
        yield Checked("plugin", "listing_time", None, took, module, "Every command waits for it.")
    for info in infos:
        for record in info.parts:
            yield from of_record(record, info)
    for command in commands:
        values = {"distribution": name, "command": command.name}
        suite = type("Command", (CommandSuite,), values)
        yield from _asked(suite, f"command {command.name}", _file_of(command.point.module))
    if with_pairs and mine:
        yield from of_pairs(name)


def of_record(record: Record, info: PluginInfo) -> Iterator[Checked]:
    """Yield the promises of what a record describes."""
    part, module = f"{NOUNS[record.kind]} {record.name}", _file_of(info.module)
    if isinstance(record, ComponentSpec):
        found = Registered[ComponentSpec](record, info.distribution, info.version, info.key)
        yield from of_part(found, module)
    elif isinstance(record, RecipeSpec):
        suite: type[Any] = type("Recipe", (RecipeSuite,), {"recipe": record.name})
        try:
            file = _shown(package_path(record.path))
        except CseError:
            file = module
        yield from _asked(suite, part, file)
    elif isinstance(record, ReporterSpec):
        suite = type("Reporter", (ReporterSuite,), {"reporter": record.name})
        yield from _asked(suite, part, _file_of_factory(record.factory, module))
    elif isinstance(record, StudySpec):
        yield _study(record, part, module)
    elif isinstance(record, SuiteSpec):
        why = "only with files: subclass SuiteSuite in your tests"
        yield Checked(part, "test_it_finds_its_files", None, why, module)


def _study(record: StudySpec, part: str, module: str) -> Checked:
    """Return whether the file of a study is there, and TOML."""
    name, says = "test_its_file_can_be_read", "Its path leads to a TOML file of the package."
    try:
        path = package_path(record.path, where=part)
        read_toml(path, part)
    except CseError as error:
        return Checked(part, name, False, str(error), module, says)
    return Checked(part, name, True, "", _shown(path), says)


def of_part(
    found: Registered[ComponentSpec], module: str = "", registry: Registry | None = None
) -> Iterator[Checked]:
    """Yield the promises of a part.

    Args:
        found: The part.
        module: File of its record.
        registry: Where it is found; by default what is installed.
    """
    spec = found.spec
    same = [p for p in (registry or installed_registry()).parts(spec.kind) if p.name == spec.name]
    suite = suite_of(spec.kind, found.qualified if len(same) > 1 else spec.name, registry)
    of_options = {"test_its_options_are_described_and_frozen", "test_its_default_options_are_valid"}
    own = _file_of_factory(spec.factory, module)
    options = _place(spec.options) or module
    for each in _asked(suite, f"{NOUNS[spec.kind]} {spec.name}", own):
        file = module if each.name in vars(RecordSuite) else own
        file = options if each.name in of_options else file
        yield Checked(each.part, each.name, each.ok, each.detail, file or own, each.says)


def of_pairs(name: str, registry: Registry | None = None) -> Iterator[Checked]:
    """Yield what becomes of each pair of a part with every other installed one."""
    says = "Any two parts train a step together, or the composer says why not."
    for one, other in pairs(registry, among=[name]):
        label = f"pair {one.spec.kind}.{one.name} + {other.spec.kind}.{other.name}"
        own = one if one.distribution == name else other
        file = _file_of_factory(own.spec.factory, "")
        try:
            pairing = try_pair(one, other, registry)
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            yield Checked(label, "trains_or_is_refused", False, what, file, says)
            continue
        said = pairing.verdict == "trains" or bool(pairing.reason.strip())
        detail = pairing.verdict if not pairing.reason else f"refused: {pairing.reason}"
        yield Checked(label, "trains_or_is_refused", said, detail, file, says)


def published(dist: Distribution) -> Iterator[Checked]:
    """Yield whether the metadata of a distribution is fit for an index."""
    metadata, file = cast(Message, dist.metadata), _metadata_file(dist)
    requires = [Requirement(line) for line in dist.requires or ()]
    bounds = {
        clause.operator
        for need in requires
        if canonical(need.name) == TOOLKIT
        for clause in need.specifier
    }
    own = canonical(metadata["Name"] or "") == TOOLKIT
    names = metadata.get_all("Classifier") or []
    body = metadata.get("Description") or str(metadata.get_payload() or "")
    licence = metadata.get("License-Expression") or metadata.get("License")
    for name, kept, what in (
        ("description", metadata.get("Summary"), "has no description of one line"),
        ("licence", licence, 'names no licence: license = "Apache-2.0"'),
        ("licence_file", metadata.get("License-File"),
         'brings no licence: license-files = ["LICENSE"]'),
        ("author", metadata.get("Author") or metadata.get("Author-email"), "names no author"),
        ("readme", body.strip(), 'has no readme: readme = "README.md"'),
        ("python", metadata.get("Requires-Python"), 'says no Python: requires-python = ">=3.11"'),
        ("classifiers", any(each.startswith("Programming Language") for each in names),
         "has no classifiers, by which it is found"),
        ("range_of_toolkit", own or {"<", "~=", "=="} & bounds,
         f'has no upper bound for {TOOLKIT}: "{TOOLKIT}>=0.1,<0.2"'),
    ):  # fmt: skip
        detail = "" if kept else f"{metadata['Name']} {what}"
        if not kept and _KEYS.get(name, "") in _project(file):
            detail = f"the installed metadata is older than this file, which has {_KEYS[name]}: "
            detail += "install it again with pip install -e"
        says = "Its metadata is fit for publishing."
        yield Checked("plugin", f"metadata_{name}", bool(kept), detail, file, says)


_KEYS = {
    "description": "description",
    "licence": "license",
    "licence_file": "license-files",
    "author": "authors",
    "readme": "readme",
    "python": "requires-python",
    "classifiers": "classifiers",
}
"""What each promise about metadata is called in a pyproject.toml."""


def _project(file: str) -> dict[str, Any]:
    """Return the table ``project`` of a pyproject.toml; empty where the file is another."""
    path = Path(file)
    if path.name != "pyproject.toml" or not path.is_file():
        return {}
    found: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8")).get("project", {})
    return found


def _asked(suite: type[Any], part: str, file: str) -> Iterator[Checked]:
    for each in ask(suite):
        ok = {"kept": True, "broken": False}.get(each.status)
        test = getattr(suite, each.name.partition("[")[0])
        says = (inspect.getdoc(test) or "").split("\n\n")[0].replace("\n", " ")
        yield Checked(part, each.name, ok, " ".join(each.detail.split()), file, says)


def _file_of(module: str) -> str:
    """Return the file of an entry point's module, which is not imported."""
    try:
        spec = find_spec(module.partition(":")[0])
    except (ImportError, ValueError):
        return ""
    return _shown(Path(spec.origin)) if spec is not None and spec.origin else ""


def _file_of_factory(factory: str, otherwise: str) -> str:
    try:
        return _place(load_factory(factory)) or otherwise
    except Exception:  # what is wrong with it is a promise of its own
        return otherwise


def _place(made: Any) -> str:
    """Return file and line of a class or a function."""
    try:
        file, (_, line) = inspect.getsourcefile(made), inspect.getsourcelines(made)
    except (OSError, TypeError):
        return ""
    return f"{_shown(Path(file))}:{line}" if file else ""


def _metadata_file(dist: Distribution) -> str:
    """Return the pyproject.toml of an editable installation, or the file of the metadata."""
    origin = json.loads(dist.read_text("direct_url.json") or "{}")
    path = Path(unquote(urlsplit(origin.get("url", "")).path), "pyproject.toml")
    if origin.get("dir_info", {}).get("editable") and path.is_file():
        return _shown(path)
    return _shown(Path(str(getattr(dist, "_path", "")), "METADATA"))


def _shown(path: Path) -> str:
    """Return a path as a reader of this folder finds it."""
    near = os.path.relpath(path)
    return str(path) if near.startswith("..") else near
