"""The hooks. Each takes no argument and returns a list of records."""

from __future__ import annotations

from typing import get_args, get_type_hints

from pluggy import HookimplMarker, HookspecMarker

from cse_core.records import (
    AugmenterSpec,
    BranchSpec,
    DatasetSpec,
    EncoderSpec,
    LossSpec,
    MetricSpec,
    MinerSpec,
    PoolSpec,
    RecipeSpec,
    ReporterSpec,
    StoreSpec,
    SuiteSpec,
)

CSE_API_VERSION = 1
"""Raised when a change of hooks or contracts breaks plugins; a plugin may state the one it needs as
``CSE_API_VERSION`` in its plugin module."""
GROUP = "cse"
"""The entry-point group of plugins, and pluggy's project name."""

hookspec = HookspecMarker(GROUP)
hookimpl = HookimplMarker(GROUP)


@hookspec
def cse_augmenters() -> list[AugmenterSpec]:  # type: ignore[empty-body]
    """Return augmenters: parts that change texts, tokens or embeddings of a view."""


@hookspec
def cse_poolers() -> list[PoolSpec]:  # type: ignore[empty-body]
    """Return pooler stages: slicing, token states to vectors, heads."""


@hookspec
def cse_positive_miners() -> list[MinerSpec]:  # type: ignore[empty-body]
    """Return miners: parts that find positives in a step or between rounds."""


@hookspec
def cse_negative_stores() -> list[StoreSpec]:  # type: ignore[empty-body]
    """Return stores: more negatives than the batch holds, or weights on those there are."""


@hookspec
def cse_losses() -> list[LossSpec]:  # type: ignore[empty-body]
    """Return losses: anchors, positives and negatives to a scalar."""


@hookspec
def cse_branches() -> list[BranchSpec]:  # type: ignore[empty-body]
    """Return branches: copies of the encoder that encode views."""


@hookspec
def cse_metrics() -> list[MetricSpec]:  # type: ignore[empty-body]
    """Return metrics: numbers about a model."""


@hookspec
def cse_recipes() -> list[RecipeSpec]:  # type: ignore[empty-body]
    """Return recipes: named compositions with a paper's settings, TOML in package data."""


@hookspec
def cse_encoders() -> list[EncoderSpec]:  # type: ignore[empty-body]
    """Return encoders that come with the plugin."""


@hookspec
def cse_datasets() -> list[DatasetSpec]:  # type: ignore[empty-body]
    """Return texts and graded pairs that come with the plugin."""


@hookspec
def cse_suites() -> list[SuiteSpec]:  # type: ignore[empty-body]
    """Return suites: texts with known answers that encoders are scored on."""


@hookspec
def cse_reporters() -> list[ReporterSpec]:  # type: ignore[empty-body]
    """Return reporters: they hear of a training run, its metrics and scores."""


HOOK_RECORDS: dict[str, type] = {
    name: get_args(get_type_hints(hook)["return"])[0]
    for name, hook in list(globals().items())
    if name.startswith("cse_")
}
"""The record that each hook returns a list of."""
