"""The suites of everything that is installed."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from cse_core.records import Kind
from cse_core.registry.registry import Registry
from cse_testkit.adapters import AdapterSuite
from cse_testkit.augmenters import AugmenterSuite
from cse_testkit.branches import BranchSuite
from cse_testkit.installed import all_recipes, installed_registry
from cse_testkit.losses import LossSuite
from cse_testkit.metrics import MetricSuite
from cse_testkit.miners import MinerSuite
from cse_testkit.plugins import PluginSuite
from cse_testkit.poolers import PoolerSuite
from cse_testkit.recipes import RecipeSuite
from cse_testkit.record_suite import RecordSuite
from cse_testkit.stores import StoreSuite

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


def suite_of(kind: Kind, name: str, registry: Registry | None = None) -> type[RecordSuite]:
    """Return the suite of a part, ready to run: with pytest, or with ``failures``.

    Args:
        kind: Its kind.
        name: Its name, ``distribution/name`` where two plugins have one of that name.
        registry: Where it is found; by default what is installed.
    """
    label = _label(kind, name.rpartition("/")[2])
    return type(label, (SUITES[kind],), {"part": (kind, name), "registry": registry})


def installed_suites(without: Collection[str] = ()) -> Iterator[type]:
    """Yield a suite for every installed part, recipe and plugin; the names begin with ``Test``.

    Args:
        without: Distributions that are left out, since their own tests hold these suites.

    A test module runs them all by taking them in::

        for suite in installed_suites():
            globals()[suite.__name__] = suite
    """
    registry = installed_registry()
    for found in registry.parts():
        if found.distribution in without:
            continue
        same = [each for each in registry.parts(found.spec.kind) if each.name == found.name]
        suite = suite_of(found.spec.kind, found.qualified if len(same) > 1 else found.name)
        if len(same) > 1:
            suite.__name__ = _label(found.spec.kind, found.qualified.replace("/", "-"))
        yield suite
    for recipe in all_recipes():
        if recipe.distribution in without:
            continue
        yield type(_label("recipe", recipe.name), (RecipeSuite,), {"recipe": recipe.name})
    for name in dict.fromkeys(
        info.distribution for info in registry.plugins if info.status != "blocked"
    ):
        if name in without:
            continue
        yield type(_label("plugin", name), (PluginSuite,), {"distribution": name})


def _label(kind: str, name: str) -> str:
    return "Test" + "".join(word.title() for word in f"{kind}-{name}".split("-"))
