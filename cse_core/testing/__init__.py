"""The conformance kit for authors of plugins; needs pytest.

Subclass a suite for each part and each recipe, and one for the plugin::

    from cse_core.testing import LossSuite, PluginSuite, RecipeSuite

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

from cse_core.testing.augmenters import AugmenterSuite
from cse_core.testing.batches import make_batch, make_context, make_part, make_setup
from cse_core.testing.branches import BranchSuite
from cse_core.testing.checks import SUITES, installed_suites, suite_of
from cse_core.testing.completion import Needed, complete
from cse_core.testing.corpora import tiny_corpus, write_corpus
from cse_core.testing.encoders import shared_encoder, tiny_encoder
from cse_core.testing.installed import all_parts, all_recipes, installed_registry
from cse_core.testing.losses import LossSuite
from cse_core.testing.matrix import Pairing, pairs, try_pair
from cse_core.testing.metrics import MetricSuite
from cse_core.testing.miners import MinerSuite
from cse_core.testing.part_suite import PartSuite
from cse_core.testing.plugins import PluginSuite
from cse_core.testing.poolers import PoolerSuite
from cse_core.testing.promises import BrokenPromise, failures, promise
from cse_core.testing.recipes import ENCODERS, RecipeSuite, value_at
from cse_core.testing.record_suite import RecordSuite
from cse_core.testing.rigs import Rig, StepRun, compose, run_steps, tiny_facts
from cse_core.testing.stores import StoreSuite
from cse_core.testing.timing import least_seconds
from cse_core.testing.trials import Trial

__all__ = [
    "ENCODERS",
    "SUITES",
    "AugmenterSuite",
    "BranchSuite",
    "BrokenPromise",
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
    "Rig",
    "StepRun",
    "StoreSuite",
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
