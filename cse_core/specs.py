"""The hooks. Each takes no argument and returns a list of records."""

from __future__ import annotations

from pluggy import HookimplMarker, HookspecMarker

from cse_core import records as r

CSE_API_VERSION = 1
"""Raised when a change of hooks or contracts breaks plugins; a plugin may state the one it needs as
``CSE_API_VERSION`` in its plugin module."""
CHANGES = {1: "the interface of the first release"}
"""What each version changed; messages about plugins of an older version say it."""
GROUP = "cse"
"""The entry-point group of plugins, and pluggy's project name."""

hookimpl = HookimplMarker(GROUP)

HOOK_RECORDS: dict[str, type[r.Record]] = {
    "cse_augmenters": r.AugmenterSpec,  # parts that change texts, tokens or embeddings of a view
    "cse_poolers": r.PoolSpec,  # pooler stages: slicing, token states to vectors, heads
    "cse_positive_miners": r.MinerSpec,  # parts that find positives in a step or between rounds
    "cse_negative_stores": r.StoreSpec,  # negatives beyond the batch, or weights on those there are
    "cse_losses": r.LossSpec,  # anchors, positives and negatives to a scalar
    "cse_branches": r.BranchSpec,  # copies of the encoder that encode views
    "cse_adapters": r.AdapterSpec,  # which weights of the encoder train, and modules beside them
    "cse_metrics": r.MetricSpec,  # numbers about a model
    "cse_recipes": r.RecipeSpec,  # named compositions with a paper's settings, TOML in package data
    "cse_studies": r.StudySpec,  # runs that are compared, as a paper's table, TOML in package data
    "cse_encoders": r.EncoderSpec,  # encoders that come with the plugin
    "cse_datasets": r.DatasetSpec,  # texts and graded pairs that come with the plugin
    "cse_suites": r.SuiteSpec,  # texts with known answers that encoders are scored on
    "cse_reporters": r.ReporterSpec,  # they hear of a training run, its metrics and scores
}
"""Each hook, and the record that it returns a list of."""


_hookspec = HookspecMarker(GROUP)
HOOKS = type("Hooks", (), {name: staticmethod(_hookspec(lambda: None)) for name in HOOK_RECORDS})
"""The hooks as pluggy takes them."""
