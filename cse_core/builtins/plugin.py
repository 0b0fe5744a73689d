"""The records of the built-in parts; imports no torch."""

from __future__ import annotations

from cse_core.builtins.options import (
    CsvOptions,
    EmaOptions,
    FirstLastOptions,
    FrozenOptions,
    InfonceOptions,
    MlpOptions,
    OnlineOptions,
)
from cse_core.records import BranchSpec, LossSpec, PoolerSpec, ReporterSpec
from cse_core.specs import hookimpl


@hookimpl
def cse_poolers() -> list[PoolerSpec]:
    """Return the row poolers and the head."""
    return [
        PoolerSpec(
            name="cls",
            summary="the state of the first token",
            factory="cse_core.builtins.poolers:Cls",
            sentence_transformers="cls",
        ),
        PoolerSpec(
            name="mean",
            summary="the mean of the last states",
            factory="cse_core.builtins.poolers:Mean",
            sentence_transformers="mean",
        ),
        PoolerSpec(
            name="first-last",
            summary="the mean of a first and the last layer",
            factory="cse_core.builtins.poolers:FirstLast",
            options=FirstLastOptions,
        ),
        PoolerSpec(
            name="mlp",
            summary="linear layers with tanh, in training only or kept",
            factory="cse_core.builtins.heads:Mlp",
            options=MlpOptions,
            stage="head",
        ),
    ]


@hookimpl
def cse_losses() -> list[LossSpec]:
    """Return the loss."""
    return [
        LossSpec(
            name="infonce",
            summary="cross entropy of the positive among the negatives",
            factory="cse_core.builtins.infonce:Infonce",
            options=InfonceOptions,
        )
    ]


@hookimpl
def cse_branches() -> list[BranchSpec]:
    """Return the branches."""
    return [
        BranchSpec(
            name="online",
            summary="the encoder in training itself",
            factory="cse_core.builtins.branches:Online",
            options=OnlineOptions,
            provides=("branch:online",),
        ),
        BranchSpec(
            name="ema",
            summary="an exponential moving average of the online weights",
            factory="cse_core.builtins.branches:Ema",
            options=EmaOptions,
            provides=("branch:ema",),
        ),
        BranchSpec(
            name="frozen",
            summary="an encoder that never changes",
            factory="cse_core.builtins.branches:Frozen",
            options=FrozenOptions,
            provides=("branch:frozen",),
        ),
    ]


@hookimpl
def cse_reporters() -> list[ReporterSpec]:
    """Return the reporters."""
    return [
        ReporterSpec(
            name="csv",
            summary="metrics.csv beside metrics.jsonl, a column for each key",
            factory="cse_core.builtins.csv_reporter:CsvReporter",
            options=CsvOptions,
        )
    ]
