"""The records of the built-in parts; imports neither torch nor pydantic."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import (
    AdapterSpec,
    BranchSpec,
    HeadSpec,
    LossSpec,
    MultiVectorSpec,
    PoolSpec,
    RecipeSpec,
    RowPoolerSpec,
    SamplerSpec,
)

if TYPE_CHECKING:
    from cse_core.run_info import RunInfo
    from cse_defaults.basics.options import MlpOptions, TokenVectorsOptions

CACHED = "each text that no part changes is encoded once; steps read vectors in memory"
POOLED = "its first token goes through its own pooler, in place of the pooling of its folder"


def _scored_tokens(options: TokenVectorsOptions) -> dict[str, Any] | None:
    skipped = list(string.punctuation) if options.skip == "punctuation" else []
    return {"skiplist_words": skipped} if options.special else None


def _as_wide(options: MlpOptions, facts: RunInfo) -> MlpOptions:
    """Take the size of a branch's vectors."""
    if not options.like or options.dimension is not None:
        return options
    if options.like not in facts.branches:
        raise ValueError(f"like = {options.like}: this run has no branch of this name")
    if options.like not in facts.widths:
        return options
    if (size := facts.widths[options.like]) is None:
        raise ValueError(f"the size of {options.like}'s vectors is not known: write dimension")
    return options.model_copy(update={"dimension": size})


@hookimpl
def cse_poolers() -> list[PoolSpec]:
    """Return the row poolers and the head."""
    return [
        RowPoolerSpec(
            name="cls",
            summary="the state of the first token",
            factory="cse_defaults.basics.poolers:Cls",
            sentence_transformers="cls",
        ),
        RowPoolerSpec(
            name="mean",
            summary="the mean of the last states",
            factory="cse_defaults.basics.poolers:Mean",
            options="cse_defaults.basics.options:MeanOptions",
            sentence_transformers="mean",
        ),
        RowPoolerSpec(
            name="last-token",
            summary="the state of the last token, which ends the text",
            factory="cse_defaults.basics.poolers:LastToken",
            options="cse_defaults.basics.options:LastTokenOptions",
            requires=lambda given: ("end-token",) if given.end else (),
            sentence_transformers="lasttoken",
        ),
        RowPoolerSpec(
            name="first-last",
            summary="the mean of a first and the last layer",
            factory="cse_defaults.basics.poolers:FirstLast",
            options="cse_defaults.basics.options:FirstLastOptions",
        ),
        MultiVectorSpec(
            name="token-vectors",
            summary="a vector of each token, beside that of the text",
            factory="cse_defaults.basics.poolers:TokenVectors",
            options="cse_defaults.basics.options:TokenVectorsOptions",
            provides=("level:token",),
            sentence_transformers=_scored_tokens,
        ),
        HeadSpec(
            name="mlp",
            summary="linear layers with tanh, in training only or kept",
            factory="cse_defaults.basics.heads:Mlp",
            options="cse_defaults.basics.options:MlpOptions",
            resolve_options=_as_wide,
        ),
    ]


@hookimpl
def cse_samplers() -> list[SamplerSpec]:
    """Return the sampler of batches of one group."""
    return [
        SamplerSpec(
            name="grouped",
            summary="batches of rows that share a label, such as their source or topic",
            factory="cse_defaults.basics.grouped:Grouped",
            options="cse_defaults.basics.options:GroupedOptions",
            reads=lambda chosen: {chosen.column: "label"},
        )
    ]


@hookimpl
def cse_losses() -> list[LossSpec]:
    """Return the loss."""
    return [
        LossSpec(
            name="infonce",
            summary="cross entropy of the positive among the negatives",
            factory="cse_defaults.basics.infonce:Infonce",
            options="cse_defaults.basics.options:InfonceOptions",
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipe of labelled pairs."""
    return records_of_files(RecipeSpec, "cse_defaults.basics:recipes")


@hookimpl
def cse_adapters() -> list[AdapterSpec]:
    """Return the adapter that trains new heads alone."""
    return [
        AdapterSpec(
            name="heads-only",
            summary="trains no weight of the encoder: new heads and losses alone",
            factory="cse_defaults.basics.adapters:HeadsOnly",
        )
    ]


@hookimpl
def cse_branches() -> list[BranchSpec]:
    """Return the branches."""
    return [
        BranchSpec(
            name="online",
            summary="the encoder in training itself",
            factory="cse_defaults.basics.branches:Online",
            options="cse_defaults.basics.options:OnlineOptions",
            provides=("branch:online",),
            trainable=True,
        ),
        BranchSpec(
            name="ema",
            summary="an exponential moving average of the online weights",
            factory="cse_defaults.basics.branches:Ema",
            options="cse_defaults.basics.options:EmaOptions",
            provides=("branch:ema",),
        ),
        BranchSpec(
            name="frozen",
            summary="an encoder that never changes",
            factory="cse_defaults.basics.branches:Frozen",
            options="cse_defaults.basics.options:FrozenOptions",
            provides=("branch:frozen",),
            plan_notes=lambda chosen, facts: [CACHED] * chosen.cache + [POOLED] * chosen.pooler,
        ),
    ]
