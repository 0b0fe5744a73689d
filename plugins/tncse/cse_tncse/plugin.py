"""The records of TNCSE; imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import BranchSpec, LossSpec, MultiVectorSpec, Paper, RecipeSpec, ViewSpec
from cse_core.run_info import RunInfo

if TYPE_CHECKING:
    from cse_tncse.options import NormConstraintOptions, OfTwoEncoders, TwoEncodersOptions

PAPER = Paper("Zong et al.: TNCSE, AAAI 2025", "cse_tncse:paper.bib")
HINT = "--recipe tncse has both encoders and their views"


def _views(options: OfTwoEncoders) -> tuple[str, ...]:
    names = (options.target, options.anchor_view, options.target_view)
    return tuple(f"view:{name}" for name in names)


def _of_pairs(options: TwoEncodersOptions, facts: RunInfo) -> TwoEncodersOptions:
    """Refuse hard negatives, of which the second encoder has no vectors."""
    lacking = [name for name, view in facts.views.items() if view["role"] == "negative"]
    if lacking and options.negatives not in ("stored", "none"):
        raise ValueError(f"the second encoder has no vectors of view {lacking[0]}; remove it")
    return options


def _norms(options: NormConstraintOptions) -> tuple[str, ...]:
    return (*_views(options), f"level:{options.norms}")


@hookimpl
def cse_branches() -> list[BranchSpec]:
    """Return the second encoder."""
    return [
        BranchSpec(
            name="second",
            summary="a second encoder that trains beside the first, from its own start",
            factory="cse_tncse.parts:Second",
            options="cse_tncse.options:SecondOptions",
            provides=("branch:second",),
            trainable=True,
            paper=PAPER,
        )
    ]


@hookimpl
def cse_views() -> list[ViewSpec]:
    """Return the texts that the second encoder reads."""
    return [
        ViewSpec(name="second-anchor", summary="the sentence, for a second encoder", column="text"),
        ViewSpec(
            name="second-positive",
            summary="its positive, for a second encoder",
            column="positive",
            optional=True,
        ),
    ]


@hookimpl
def cse_poolers() -> list[MultiVectorSpec]:
    """Return the state of the first token at a level of its own."""
    return [
        MultiVectorSpec(
            name="first-state",
            summary="the first token's state at level pooled, for heads of its own",
            factory="cse_tncse.parts:FirstState",
            provides=("level:pooled",),
            paper=PAPER,
        )
    ]


@hookimpl
def cse_losses() -> list[LossSpec]:
    """Return the losses of two encoders."""
    return [
        LossSpec(
            name="two-encoders",
            summary="InfoNCE of the second encoder's vectors, and between both encoders'",
            factory="cse_tncse.losses:TwoEncoders",
            options="cse_tncse.options:TwoEncodersOptions",
            requires=_views,
            resolve_options=_of_pairs,
            hint=HINT,
            paper=PAPER,
        ),
        LossSpec(
            name="norm-constraint",
            summary="the norms of two encoders' vectors agree, where their directions do not",
            factory="cse_tncse.losses:NormConstraint",
            options="cse_tncse.options:NormConstraintOptions",
            requires=_norms,
            contrastive=False,
            hint=HINT,
            paper=PAPER,
        ),
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipe."""
    return records_of_files(RecipeSpec, "cse_tncse:recipes", paper=PAPER)
