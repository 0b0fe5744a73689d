"""The conformance kit for authors of plugins; needs pytest.

Subclass a suite for each part and each recipe, and one for the plugin::

    from cse_testkit import LossSuite, PluginSuite, RecipeSuite

    class TestMargin(LossSuite):
        part = ("loss", "margin")

    class TestRecipe(RecipeSuite):
        recipe = "margin-paper"

    class TestPlugin(PluginSuite):
        distribution = "cse-margin"

Everything runs on a tiny random encoder and a made-up corpus: no network, no GPU. For tests of your
own there are ``make_batch``, ``make_context`` and ``make_part`` (fixed vectors, no encoder) and
``run_steps`` (a few training steps).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cse_testkit.adapters import AdapterSuite
    from cse_testkit.augmenters import AugmenterSuite
    from cse_testkit.batches import make_batch, make_context, make_part, make_setup
    from cse_testkit.branches import BranchSuite
    from cse_testkit.checks import SUITES, installed_suites, suite_of
    from cse_testkit.commands import CommandSuite
    from cse_testkit.completion import Needed, complete
    from cse_testkit.corpora import tiny_corpus, write_corpus
    from cse_testkit.encoders import shared_encoder, tiny_encoder
    from cse_testkit.installed import all_parts, all_recipes, installed_registry
    from cse_testkit.losses import LossSuite
    from cse_testkit.matrix import Pairing, pairs, try_pair
    from cse_testkit.metrics import MetricSuite
    from cse_testkit.miners import MinerSuite
    from cse_testkit.part_suite import PartSuite
    from cse_testkit.plugins import PluginSuite
    from cse_testkit.poolers import PoolerSuite
    from cse_testkit.promises import BrokenPromise, failures, promise
    from cse_testkit.recipe_settings import ENCODERS
    from cse_testkit.recipes import RecipeSuite, value_at
    from cse_testkit.record_suite import RecordSuite
    from cse_testkit.reporters import ReporterSuite
    from cse_testkit.rigs import Rig, StepRun, compose, run_steps, tiny_facts
    from cse_testkit.stores import StoreSuite
    from cse_testkit.suites import SuiteSuite
    from cse_testkit.timing import least_seconds
    from cse_testkit.trials import Trial

__all__ = [
    "ENCODERS",
    "SUITES",
    "AdapterSuite",
    "AugmenterSuite",
    "BranchSuite",
    "BrokenPromise",
    "CommandSuite",
    "LossSuite",
    "MetricSuite",
    "MinerSuite",
    "Needed",
    "Pairing",
    "PartSuite",
    "PluginSuite",
    "PoolerSuite",
    "RecipeSuite",
    "RecordSuite",
    "ReporterSuite",
    "Rig",
    "StepRun",
    "StoreSuite",
    "SuiteSuite",
    "Trial",
    "all_parts",
    "all_recipes",
    "complete",
    "compose",
    "failures",
    "installed_registry",
    "installed_suites",
    "least_seconds",
    "make_batch",
    "make_context",
    "make_part",
    "make_setup",
    "pairs",
    "promise",
    "run_steps",
    "shared_encoder",
    "suite_of",
    "tiny_corpus",
    "tiny_encoder",
    "tiny_facts",
    "try_pair",
    "value_at",
    "write_corpus",
]

_PLACES = {
    "adapters": ("AdapterSuite",),
    "augmenters": ("AugmenterSuite",),
    "batches": ("make_batch", "make_context", "make_part", "make_setup"),
    "branches": ("BranchSuite",),
    "checks": ("SUITES", "installed_suites", "suite_of"),
    "commands": ("CommandSuite",),
    "completion": ("Needed", "complete"),
    "corpora": ("tiny_corpus", "write_corpus"),
    "encoders": ("shared_encoder", "tiny_encoder"),
    "installed": ("all_parts", "all_recipes", "installed_registry"),
    "losses": ("LossSuite",),
    "matrix": ("Pairing", "pairs", "try_pair"),
    "metrics": ("MetricSuite",),
    "miners": ("MinerSuite",),
    "part_suite": ("PartSuite",),
    "plugins": ("PluginSuite",),
    "poolers": ("PoolerSuite",),
    "promises": ("BrokenPromise", "failures", "promise"),
    "recipe_settings": ("ENCODERS",),
    "recipes": ("RecipeSuite", "value_at"),
    "record_suite": ("RecordSuite",),
    "reporters": ("ReporterSuite",),
    "rigs": ("Rig", "StepRun", "compose", "run_steps", "tiny_facts"),
    "stores": ("StoreSuite",),
    "suites": ("SuiteSuite",),
    "timing": ("least_seconds",),
    "trials": ("Trial",),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import what is asked for: a command of the kit is found without torch."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
