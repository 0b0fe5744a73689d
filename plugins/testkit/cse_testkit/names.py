"""Every name of the kit that authors use; ``cse_testkit`` has them too, imported when asked for."""

from cse_testkit.batch_suites import LossSuite, StoreSuite
from cse_testkit.batches import make_batch, make_context, make_part, make_setup, tiny_tokenizer
from cse_testkit.checking import pairs, part_suites, recipe_suites, suite_of
from cse_testkit.completion import complete, train_together
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
from cse_testkit.promises import NotAsked, NotMeant, failures, installed_registry
from cse_testkit.recipes import ENCODERS, RecipeSuite, settings_of
from cse_testkit.row_suites import MinerSuite, SamplerSuite
from cse_testkit.runs import Rig, compose, run_steps
from cse_testkit.tiny import shared_encoder, tiny_corpus, tiny_encoder, write_corpus

__all__ = [
    "AdapterSuite", "AugmenterSuite", "BranchSuite", "ENCODERS", "LossSuite", "MetricSuite",
    "MinerSuite", "NotAsked", "NotMeant", "PluginSuite", "PoolerSuite", "RecipeSuite",
    "ReporterSuite", "Rig", "SamplerSuite", "ScheduleSuite", "StoreSuite", "SuiteSuite",
    "TokenLossSuite", "TransformSuite", "complete", "compose", "failures", "installed_registry",
    "make_batch", "make_context", "make_part", "make_setup", "pairs", "part_suites",
    "recipe_suites", "run_steps", "settings_of", "shared_encoder", "suite_of", "tiny_corpus",
    "tiny_encoder", "tiny_tokenizer", "train_together", "write_corpus",
]  # fmt: skip
