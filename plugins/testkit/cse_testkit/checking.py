"""What ``cse check-plugin`` asks of an installed distribution: the promises of the suites."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
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
from cse_core.records import (
    ComponentSpec,
    Kind,
    RecipeSpec,
    Record,
    ReporterSpec,
    StudySpec,
    SuiteSpec,
)
from cse_core.registry.plugin_info import NOUNS, TOOLKIT, PluginInfo, canonical
from cse_core.registry.registry import Registry
from cse_core.runtime.loading import load_factory, package_path
from cse_testkit.augmenters import AugmenterSuite
from cse_testkit.branches import AdapterSuite, BranchSuite, MetricSuite
from cse_testkit.evaluation_suites import ReporterSuite
from cse_testkit.losses import LossSuite
from cse_testkit.pairing import pairs, path_of, try_pair
from cse_testkit.part_suite import RecordSuite
from cse_testkit.plugins import CommandSuite, PluginSuite
from cse_testkit.poolers import PoolerSuite
from cse_testkit.promises import Suite, ask
from cse_testkit.recipes import RecipeSuite
from cse_testkit.runs import installed_registry
from cse_testkit.stores import MinerSuite, StoreSuite

SUITES: dict[Kind, type[RecordSuite]] = {
    "aug": AugmenterSuite,
    "pool": PoolerSuite,
    "positives": MinerSuite,
    "negatives": StoreSuite,
    "loss": LossSuite,
    "branch": BranchSuite,
    "metric": MetricSuite,
    "adapter": AdapterSuite,
}
"""The suite of each kind."""


@dataclass(frozen=True)
class Checked:
    """What became of a promise of a distribution.

    Attributes:
        part: Whose promise: ``loss margin``, ``recipe margin``, ``pair loss.margin + aug.fgsm``.
        name: Of the promise.
        ok: Whether it is kept; None where it was not asked.
        detail: What broke it, or why it means nothing for the part.
        file: Where to fix it.
        says: The promise in words.
    """

    part: str
    name: str
    ok: bool | None
    detail: str = ""
    file: str = ""
    says: str = ""


def suite_of(kind: Kind, name: str, registry: Registry | None = None) -> type[RecordSuite]:
    """Return the suite of a part, ready to run: with pytest, or with ``failures``.

    Args:
        kind: Its kind.
        name: Its name, ``distribution/name`` where two plugins have one of that name.
        registry: Where it is found; by default what is installed.
    """
    return _suite(SUITES[kind], f"{kind} {name}", part=(kind, name), registry=registry)


def installed_suites(without: Collection[str] = ()) -> Iterator[type[Suite]]:
    """Yield a suite for every installed part, recipe and plugin; the names begin with ``Test``.

    Args:
        without: Distributions that are left out, since their own tests hold these suites.

    A test module runs them all by taking them in::

        for suite in installed_suites():
            globals()[suite.__name__] = suite
    """
    registry = installed_registry()
    for found in registry.parts():
        if found.distribution not in without:
            yield suite_of(found.spec.kind, found.qualified)
    for recipe in registry.recipes():
        if recipe.distribution not in without:
            yield _suite(RecipeSuite, f"recipe {recipe.name}", recipe=recipe.name)
    names = [info.distribution for info in registry.plugins if info.status != "blocked"]
    for name in dict.fromkeys(names):
        if name not in without:
            yield _suite(PluginSuite, f"plugin {name}", distribution=name)


def _suite(base: type[Any], label: str, **values: Any) -> type[Any]:
    words = label.replace("/", " ").replace("-", " ").split()
    return type("Test" + "".join(word.title() for word in words), (base,), values)


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
    name, module = infos[0].distribution, _file_of(infos[0].module)
    mine = any(info.hooks or info.reason for info in infos)
    if mine:
        yield from _asked(_suite(PluginSuite, name, distribution=name), "plugin", module)
    yield from published(distribution(name))
    took = f"{1000 * seconds:.0f} ms, more than {1000 * SLOW:.0f}: what does it import?"
    slow = took if seconds > SLOW else ""
    yield Checked(
        "plugin",
        "listing_time",
        None if slow else True,
        slow,
        module,
        "Every command waits for it.",
    )
    for info in infos:
        for record in info.parts:
            yield from of_record(record, info)
    for command in commands:
        suite = _suite(CommandSuite, name, distribution=name, command=command.name)
        yield from _asked(suite, f"command {command.name}", _file_of(command.point.module))
    if with_pairs and mine:
        yield from of_pairs(name)


def of_record(
    record: Record, info: PluginInfo, registry: Registry | None = None
) -> Iterator[Checked]:
    """Yield the promises of what a record describes."""
    part, module = f"{NOUNS[record.kind]} {record.name}", _file_of(info.module)
    if isinstance(record, ComponentSpec):
        suite = suite_of(record.kind, f"{info.distribution}/{record.name}", registry)
        factory, options = _file_of_factory(record.factory, module), _place(record.options)
        for each in _asked(suite, part, factory):
            of_record = f"promise_{each.name}" in vars(RecordSuite)
            file = (
                (options if "default" in each.name or "described" in each.name else module)
                if of_record
                else factory
            )
            yield replace(each, file=file or factory)
    elif isinstance(record, RecipeSpec):
        recipe = _suite(RecipeSuite, record.name, recipe=record.name)
        yield from _asked(recipe, part, _file_of_path(record.path, module))
    elif isinstance(record, ReporterSpec):
        reporter = _suite(ReporterSuite, record.name, reporter=record.name)
        yield from _asked(reporter, part, _file_of_factory(record.factory, module))
    elif isinstance(record, StudySpec):
        study = _suite(_StudySuite, record.name, record=record)
        yield from _asked(study, part, _file_of_path(record.path, module))
    elif isinstance(record, SuiteSpec):
        why = "only with files: subclass SuiteSuite in your tests"
        yield Checked(part, "it_finds_its_files", None, why, module)


class _StudySuite(Suite):
    record: StudySpec

    def promise_its_file_can_be_read(self) -> None:
        """Its path leads to a TOML file of the package."""
        part = f"study {self.record.name}"
        read_toml(package_path(self.record.path, where=part), part)


def of_pairs(name: str, registry: Registry | None = None) -> Iterator[Checked]:
    """Yield what becomes of each pair of a part with every other installed one."""
    says = "Any two parts train a step together, or the composer says why not."
    for one, other in pairs(registry, among=[name]):
        label = f"pair {path_of(one)} + {path_of(other)}"
        own = one if one.distribution == name else other
        try:
            pairing = try_pair(one, other, registry)
            said, detail = True, str(pairing.verdict)
            if pairing.verdict == "refused":
                said, detail = bool(pairing.reason.strip()), f"refused: {pairing.reason}"
        except Exception as error:
            said, detail = False, f"{type(error).__name__}: {error}"
        file = _file_of_factory(own.spec.factory, "")
        yield Checked(label, "trains_or_is_refused", said, detail, file, says)


def published(dist: Distribution) -> Iterator[Checked]:
    """Yield whether the metadata of a distribution is fit for an index."""
    metadata, file = cast(Message, dist.metadata), _metadata_file(dist)
    needs = [Requirement(line) for line in dist.requires or ()]
    bounds = {
        clause.operator
        for need in needs
        if canonical(need.name) == TOOLKIT
        for clause in need.specifier
    }
    own = canonical(metadata["Name"] or "") == TOOLKIT
    names = metadata.get_all("Classifier") or []
    body = metadata.get("Description") or str(metadata.get_payload() or "")
    licence = metadata.get("License-Expression") or metadata.get("License")
    for name, kept, what in (
        ("description", metadata.get("Summary"), "no description of one line"),
        ("licence", licence, 'no licence: license = "Apache-2.0"'),
        ("licence_file", metadata.get("License-File"), 'no license-files = ["LICENSE"]'),
        ("author", metadata.get("Author") or metadata.get("Author-email"), "no authors"),
        ("readme", body.strip(), 'no readme = "README.md"'),
        ("python", metadata.get("Requires-Python"), 'no requires-python = ">=3.11"'),
        (
            "classifiers",
            any(each.startswith("Programming Language") for each in names),
            "no classifiers, by which it is found",
        ),
        (
            "range_of_toolkit",
            own or {"<", "~=", "=="} & bounds,
            f'no upper bound for {TOOLKIT}: "{TOOLKIT}>=0.1,<0.2"',
        ),
    ):
        again = "if pyproject.toml has it, install the package again"
        detail = "" if kept else f"the installed {metadata['Name']} has {what} ({again})"
        says = "Its metadata is fit for publishing."
        yield Checked("plugin", f"metadata_{name}", bool(kept), detail, file, says)


def _asked(suite: type[Suite], part: str, file: str) -> Iterator[Checked]:
    for each in ask(suite):
        ok = {"kept": True, "broken": False}.get(each.status)
        yield Checked(part, each.name, ok, each.detail, file, each.says)


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


def _file_of_path(path: str, otherwise: str) -> str:
    try:
        return _shown(package_path(path))
    except CseError:
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
