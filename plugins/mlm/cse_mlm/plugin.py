"""The records of masked language modelling; imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import (
    AugmenterSpec,
    LossSpec,
    Paper,
    RecipeSpec,
    StudySpec,
    TokenLossSpec,
    ViewSpec,
)

if TYPE_CHECKING:
    from cse_mlm.options import AuxiliaryMlmOptions, HidingOptions

PAPER = Paper(
    "Devlin, Chang, Lee and Toutanova: BERT, NAACL 2019", "cse_mlm:papers/devlin-etal-2019-bert.bib"
)
WU = Paper("Wu et al.: InfoCSE, Findings of EMNLP 2022", "cse_mlm:papers/wu-etal-2022-infocse.bib")


def _views(options: AuxiliaryMlmOptions) -> tuple[str, ...]:
    return tuple(view for view in (options.view, options.second) if view is not None)


def _needs(options: AuxiliaryMlmOptions) -> tuple[str, ...]:
    return (*_token(options), *(f"view:{view}" for view in _views(options)))


def _token(options: HidingOptions) -> tuple[str, ...]:
    return () if options.token else ("mask-token",)


@hookimpl
def cse_augmenters() -> list[AugmenterSpec]:
    """Return the augmenter that hides tokens."""
    return [
        AugmenterSpec(
            name="mask",
            summary="hides tokens behind the mask token, and leaves their ids as labels",
            factory="cse_mlm.mask:Mask",
            options="cse_mlm.options:MaskOptions",
            views=("masked",),
            provides=lambda options: tuple(f"labels:{v}" for v in options.views or ("masked",)),
            requires=_token,
            paper=PAPER,
        )
    ]


@hookimpl
def cse_losses() -> list[LossSpec]:
    """Return the losses that predict them."""
    return [
        TokenLossSpec(
            name="mlm",
            summary="cross entropy of the tokens that mask has hidden",
            factory="cse_mlm.loss:Mlm",
            options="cse_mlm.options:MlmOptions",
            requires=lambda options: (f"labels:{options.view}",),
            paper=PAPER,
        ),
        TokenLossSpec(
            name="auxiliary-mlm",
            summary="a network beside the encoder predicts hidden tokens with its first state",
            factory="cse_mlm.auxiliary:AuxiliaryMlm",
            options="cse_mlm.options:AuxiliaryMlmOptions",
            tokens=_views,
            requires=_needs,
            paper=WU,
        ),
    ]


@hookimpl
def cse_views() -> list[ViewSpec]:
    """Return the view that is masked."""
    return [
        ViewSpec(
            name="masked",
            summary="the sentence once more, for losses on its hidden tokens",
            column="text",
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipes."""
    return [
        *records_of_files(RecipeSpec, "cse_mlm:recipes", "mlm", paper=PAPER),
        *records_of_files(RecipeSpec, "cse_mlm:recipes", "infocse-wu", paper=WU),
    ]


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return the comparison with SimCSE."""
    return records_of_files(StudySpec, "cse_mlm:studies", prefix="mlm/", paper=WU)
