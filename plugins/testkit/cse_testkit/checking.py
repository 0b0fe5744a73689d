"""What ``cse check-plugin`` asks of an installed distribution: the promises of the suites."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from itertools import chain, combinations, islice
from pathlib import Path
from typing import Any

from cse_cli.api import PluginInfo, Registry
from cse_core.errors import CseError
from cse_core.hookspecs import NOUNS
from cse_core.loading import load_factory, package_path
from cse_core.records import (
    ComponentSpec,
    Kind,
    RecipeSpec,
    Record,
    ReporterSpec,
    ScheduleSpec,
    SourceSpec,
    SuiteSpec,
    TokenLossSpec,
)
from cse_testkit.batch_suites import LossSuite, StoreSuite
from cse_testkit.completion import KINDS, Found, path_of, train_together
from cse_testkit.encoding_suites import (
    AdapterSuite,
    AugmenterSuite,
    BranchSuite,
    TokenLossSuite,
    TransformSuite,
)
from cse_testkit.evaluation_suites import MetricSuite, ReporterSuite, ScheduleSuite, SuiteSuite
from cse_testkit.plugins import PluginSuite
from cse_testkit.pooler_suite import PoolerSuite
from cse_testkit.promises import Asked, Suite, ask, installed_registry, names_of
from cse_testkit.recipes import RecipeSuite
from cse_testkit.record_suite import RecordSuite
from cse_testkit.row_suites import MinerSuite, SamplerSuite
from cse_testkit.source_suite import SourceSuite
from cse_testkit.tiny import declared_options

SUITES: dict[Kind, type[RecordSuite]] = {
    "aug": AugmenterSuite,
    "pool": PoolerSuite,
    "transform": TransformSuite,
    "positives": MinerSuite,
    "negatives": StoreSuite,
    "sampler": SamplerSuite,
    "loss": LossSuite,
    "branch": BranchSuite,
    "metric": MetricSuite,
    "adapter": AdapterSuite,
}
"""The suite of each kind."""


def suite_of(
    kind: Kind, name: str, registry: Registry | None = None, **values: Any
) -> type[RecordSuite]:
    """Return the suite of a part, ready to run: with pytest, or with ``failures``.

    Args:
        kind: Its kind.
        name: Its name, ``distribution/name`` where two plugins have one of that name.
        registry: Where it is found; by default what is installed.
        values: Attributes of the suite, such as ``options``.
    """
    given = {"part": (kind, name), "registry": registry, **values}
    spec = (registry or installed_registry()).find(kind, name).spec
    suite = TokenLossSuite if isinstance(spec, TokenLossSpec) else SUITES[kind]
    return type(_class_name(f"{kind} {name}"), (suite,), given)


def part_suites(
    distribution: str, parts: Mapping[str, Mapping[str, Any]] | None = None, **every: Any
) -> dict[str, type[Any]]:
    """Return the suites of a distribution and of each of its parts, for a module of tests.

    ::

        globals().update(part_suites("cse-margin", {"loss.margin": {"options": {"margin": 0.3}}}))

    Args:
        distribution: Its name, as pip shows it.
        parts: Attributes of suites by kind and name: ``options``, ``variants``, ``slow``.
        every: Attributes of the suites of all its parts.

    Raises:
        ValueError: If it brings no part that is named.
    """
    given = dict(parts or {})
    attributes: dict[str, Any] = {"distribution": distribution, "parts": dict(given)}
    suites: list[type[Suite]] = [type("TestPlugin", (PluginSuite,), attributes)]
    for part in installed_registry().parts():
        if part.distribution == distribution:
            values = {**every, **given.pop(path_of(part), {})}
            suites.append(suite_of(part.spec.kind, part.name, **values))
    return _by_name(distribution, suites, given)


def recipe_suites(
    distribution: str,
    settings: Path | None = None,
    recipes: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, type[Any]]:
    """Return the suites of a distribution's recipes, for a module of tests.

    Args:
        distribution: Its name, as pip shows it.
        settings: A folder with the table of each recipe's settings, ``NAME.toml``.
        recipes: Attributes of suites by recipe: ``sets``, ``columns``.

    Raises:
        ValueError: If it brings no recipe that is named, or that has a table.
    """
    tables = {path.stem: path for path in settings.glob("*.toml")} if settings else {}
    given = {name: {"settings": path} for name, path in tables.items()}
    for name, values in (recipes or {}).items():
        given[name] = {**given.get(name, {}), **values}
    suites: list[type[Suite]] = []
    for recipe in installed_registry().all(RecipeSpec):
        if recipe.distribution == distribution:
            values = {"recipe": recipe.qualified, **given.pop(recipe.name, {})}
            suites.append(type(_class_name(f"recipe {recipe.name}"), (RecipeSuite,), values))
    return _by_name(distribution, suites, given)


def _by_name(
    distribution: str, suites: Sequence[type[Suite]], left: Mapping[str, Any]
) -> dict[str, type[Any]]:
    if left:
        raise ValueError(f"{distribution} brings no {', '.join(left)}")
    return {suite.__name__: suite for suite in suites}


def _class_name(label: str) -> str:
    return f"Test{''.join(filter(str.isalnum, label.title()))}"


def check(
    distribution: str, infos: Sequence[PluginInfo], *, with_pairs: bool = True
) -> Iterator[Asked]:
    """Yield the outcome of every promise of an installed distribution.

    Args:
        distribution: Its name.
        infos: Its plugins, as the plugin manager loaded them.
        with_pairs: Whether its parts are tried with every other installed one.
    """
    file = _file(_module, infos[0].module if infos else distribution.replace("-", "_"))
    plugin = _of(PluginSuite, "plugin", file, distribution=distribution)
    records = {f"{item.kind}.{item.name}": (item, info) for info in infos for item in info.parts}
    first = islice(plugin, len(names_of(PluginSuite)) - len(PluginSuite.last))
    broken = False
    for asked in chain(first, *(of_record(*entry) for entry in records.values())):
        broken = broken or asked.status == "broken"
        if asked.status == "broken" and asked.name == "its_declarations_match_its_parts":
            asked = replace(asked, file=asked.detail.partition(": ")[0])
        yield asked
    for asked in plugin if not broken else ():  # two processes, by the part that breaks it
        record: Any = records.get(asked.detail.partition(": ")[0], (None,))[0]
        if record is None:
            yield replace(asked, part="two processes")
        else:
            label, file = f"{NOUNS[record.kind]} {record.name}", _file(load_factory, record.factory)
            yield replace(asked, part=label, file=file)
    if with_pairs:
        yield from of_pairs(distribution)


def of_record(
    record: Record, info: PluginInfo, registry: Registry | None = None
) -> Iterator[Asked]:
    """Yield the promises of a record; those of encoders, views and studies are their files."""
    part, module = f"{NOUNS[record.kind]} {record.name}", _file(_module, info.module)
    if isinstance(record, ComponentSpec):
        suite = suite_of(record.kind, f"{info.distribution}/{record.name}", registry)
        factory = _file(load_factory, record.factory)
        options = _file(load_factory, record.options)
        declared = declared_options(info.distribution, f"{record.kind}.{record.name}")
        given = {"options": declared} if declared else {}
        for asked in _of(suite, part, factory or module, **given):
            if "default" in asked.name or "described" in asked.name:
                asked = replace(asked, file=options or module)
            elif f"promise_{asked.name}" in vars(RecordSuite):
                asked = replace(asked, file=module)
            yield asked
    elif isinstance(record, RecipeSpec):
        values = {"recipe": f"{info.distribution}/{record.name}", "registry": registry}
        yield from _of(RecipeSuite, part, _file(package_path, record.path), **values)
    elif isinstance(record, ReporterSpec):
        declared = declared_options(info.distribution, f"reporter.{record.name}")
        values = {"reporter": f"{info.distribution}/{record.name}", "registry": registry}
        file = _file(load_factory, record.factory)
        yield from _of(ReporterSuite, part, file, **values, options=declared)
    elif isinstance(record, ScheduleSpec):
        values = {"schedule": f"{info.distribution}/{record.name}", "registry": registry}
        yield from _of(ScheduleSuite, part, _file(load_factory, record.factory), **values)
    elif isinstance(record, SuiteSpec):
        values = {"suite": f"{info.distribution}/{record.name}", "registry": registry}
        yield from _of(SuiteSuite, part, _file(load_factory, record.factory), **values)
    elif isinstance(record, SourceSpec):
        declared = declared_options(info.distribution, f"source.{record.name}")
        values = {"source": f"{info.distribution}/{record.name}", "registry": registry, **declared}
        yield from _of(SourceSuite, part, _file(load_factory, record.factory), **values)


def of_pairs(distribution: str) -> Iterator[Asked]:
    """Yield the outcome of each pair of a distribution's part with every other installed one.

    A pair with a part of others that fails without ours is not asked.
    """
    says = "Any two parts train a step together, or the composer says why not."
    for one, other in pairs():
        ours = [part for part in (one, other) if part.distribution == distribution]
        if not ours:
            continue
        status, detail = "kept", ""
        try:
            train_together((one, other))
        except CseError as error:
            detail = f"refused: {error.line()}"
        except Exception as error:
            status, detail = "broken", f"{type(error).__name__}: {error}"
            if theirs := [part for part in (one, other) if part not in ours and fails_alone(part)]:
                status = "not asked"
                detail = f"{path_of(theirs[0])} of {theirs[0].label} fails by itself"
        label = f"pair {path_of(one)} + {path_of(other)}"
        file = _file(load_factory, ours[0].spec.factory)
        yield Asked("trains_or_is_refused", status, says, detail, label, file)  # type: ignore[arg-type]


@cache
def fails_alone(part: Found) -> bool:
    """Check whether a part fails to train alone."""
    try:
        train_together((part,))
    except CseError:
        return False
    except Exception:
        return True
    return False


def pairs(registry: Registry | None = None) -> list[tuple[Found, Found]]:
    """Return all unordered pairs of installed parts."""
    known = registry or installed_registry()
    return list(combinations((part for kind in KINDS for part in known.parts(kind)), 2))


def _of(base: type[Suite], part: str, file: str, **values: Any) -> Iterator[Asked]:
    for asked in ask(type(base.__name__, (base,), values)):
        yield replace(asked, part=part, file=file)


def _module(name: str) -> Path:
    """Return the file of an entry point's module, which is not imported."""
    spec = find_spec(name.partition(":")[0])
    return Path(spec.origin or "") if spec is not None else Path()


def _file(find: Callable[[Any], Any], name: Any) -> str:
    """Locate a definition, relative to this folder; "" where it is not found."""
    try:
        target = find(name)
        line = ""
        if not isinstance(target, Path):
            line = f":{inspect.getsourcelines(target)[1]}"
            target = Path(inspect.getfile(target))
    except Exception:  # what is wrong with it is a promise of its own
        return ""
    near = os.path.relpath(target)
    return f"{target if near.startswith('..') else near}{line}"
