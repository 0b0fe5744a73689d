"""Every name of the kit that authors use; ``cse_testkit`` has them too, imported when asked for."""

from cse_testkit.augmenters import AugmenterSuite
from cse_testkit.batches import (
    least_seconds,
    make_batch,
    make_context,
    make_part,
    make_setup,
    tiny_tokenizer,
)
from cse_testkit.branches import AdapterSuite, BranchSuite, MetricSuite
from cse_testkit.checking import SUITES, installed_suites, suite_of
from cse_testkit.completion import Needed, complete
from cse_testkit.evaluation_suites import ReporterSuite, SuiteSuite
from cse_testkit.losses import LossSuite
from cse_testkit.pairing import Pairing, pairs, try_pair
from cse_testkit.part_suite import PartSuite, RecordSuite
from cse_testkit.plugins import CommandSuite, PluginSuite
from cse_testkit.poolers import PoolerSuite
from cse_testkit.promises import NotMeant, Suite, failures
from cse_testkit.recipes import ENCODERS, RecipeSuite, settings_of
from cse_testkit.runs import (
    Rig,
    StepRun,
    Trial,
    all_parts,
    all_recipes,
    compose,
    installed_registry,
    run_steps,
    tiny_facts,
)
from cse_testkit.stores import MinerSuite, StoreSuite
from cse_testkit.tiny import shared_encoder, tiny_corpus, tiny_encoder, write_corpus

__all__ = [
    "ENCODERS",
    "SUITES",
    "AdapterSuite",
    "AugmenterSuite",
    "BranchSuite",
    "CommandSuite",
    "LossSuite",
    "MetricSuite",
    "MinerSuite",
    "Needed",
    "NotMeant",
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
    "Suite",
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
    "run_steps",
    "settings_of",
    "shared_encoder",
    "suite_of",
    "tiny_corpus",
    "tiny_encoder",
    "tiny_facts",
    "tiny_tokenizer",
    "try_pair",
    "write_corpus",
]
