"""The records of IFCL; imports no torch."""

from __future__ import annotations

from pathlib import Path

from cse_core.records import (
    AugmenterSpec,
    Facts,
    LossSpec,
    MetricSpec,
    RecipeSpec,
    StoreSpec,
)
from cse_core.specs import hookimpl
from cse_ifcl.options import (
    FusionOptions,
    HippocampusOptions,
    MutualInformationOptions,
    TwinsOptions,
)

PAPER = "Xiao, Li and Chen: Identical and Fraternal Twins, arXiv 2307.10932, 2023"


def _checked(options: FusionOptions, facts: Facts) -> FusionOptions:
    """Refuse a folder that is not there; what a bare name stands for is known when it is loaded."""
    name = options.model
    if name is None or not name.startswith((".", "/", "~")):
        return options
    if not Path(name).expanduser().exists():
        raise ValueError(
            f"model = {name}: there is no such folder; name another: --set aug.fusion.model=NAME"
        )
    return options


@hookimpl
def cse_augmenters() -> list[AugmenterSpec]:
    """Return the fusion of two languages' embeddings."""
    return [
        AugmenterSpec(
            name="fusion",
            summary="mixes a sentence's embeddings with those of its translation",
            factory="cse_ifcl.fusion:Fusion",
            options=FusionOptions,
            point=lambda options: options.at,
            requires=lambda options: (f"column:{options.column}",),
            remedy="make it with cse data translate",
            derive=_checked,
            paper=PAPER,
        )
    ]


@hookimpl
def cse_negative_stores() -> list[StoreSpec]:
    """Return the queue that forgets."""
    return [
        StoreSpec(
            name="hippocampus",
            summary="anchors of earlier batches, which weigh less the older they are",
            factory="cse_ifcl.hippocampus:Hippocampus",
            options=HippocampusOptions,
            paper=PAPER,
        )
    ]


@hookimpl
def cse_losses() -> list[LossSpec]:
    """Return the paper's whole objective."""
    return [
        LossSpec(
            name="twins",
            summary="identical and fraternal twins, and their innate distance",
            factory="cse_ifcl.twins:Twins",
            options=TwinsOptions,
            requires=_needed_by_twins,
            paper=PAPER,
        )
    ]


def _needed_by_twins(options: TwinsOptions) -> tuple[str, ...]:
    views = (f"view:{options.target}", f"view:{options.twin}")
    return views if options.margin.bounds == (0, 0) else (*views, "level:input")


@hookimpl
def cse_metrics() -> list[MetricSpec]:
    """Return the estimates of the paper's Table 4."""
    return [
        MetricSpec(
            name="mutual-information",
            summary="of the twins in training and of pairs with the highest score, with their N",
            factory="cse_ifcl.mutual_information:MutualInformation",
            options=MutualInformationOptions,
            paper=PAPER,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the English and the Chinese setting."""
    return [
        RecipeSpec(
            name="ifcl",
            summary="dropout makes the identical twin, a second language the fraternal one",
            path="cse_ifcl:recipes/ifcl.toml",
            paper=PAPER,
        ),
        RecipeSpec(
            name="ifcl-zh",
            summary="the same for Chinese, with Cantonese as the second language",
            path="cse_ifcl:recipes/ifcl-zh.toml",
            paper=PAPER,
        ),
    ]
