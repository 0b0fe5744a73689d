"""The records of PromptBERT and CoT-BERT; imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import (
    AugmenterSpec,
    LossSpec,
    Paper,
    RecipeSpec,
    RowPoolerSpec,
    StudySpec,
    TransformSpec,
    ViewSpec,
)
from cse_core.run_info import RunInfo

if TYPE_CHECKING:
    from cse_core.options import Options
    from cse_promptbert.options import TemplateDenoisingOptions, TemplateOnlyOptions

PROMPTBERT = Paper(
    "Jiang et al.: PromptBERT, EMNLP 2022", "cse_promptbert:papers/jiang-etal-2022-promptbert.bib"
)
COT_BERT = Paper(
    "Zhang, Lan and He: CoT-BERT, 2023", "cse_promptbert:papers/zhang-etal-2023-cotbert.bib"
)
SUFFIX = "-template"
"""What the name of a view ends in that holds the template of the view before it."""
VIEWS = (f"anchor{SUFFIX}", f"positive{SUFFIX}")
"""Templates of the views that are denoised by default."""


def _with_columns(options: TemplateOnlyOptions, info: RunInfo) -> Options:
    """Return the options with the columns of the views that the templates are of."""
    views, columns = options.views or VIEWS, []
    if options.columns is not None and len(options.columns) != len(views):
        raise ValueError(
            f"{len(options.columns)} columns for {len(views)} views: give {len(views)}"
        )
    for name in views:
        base = name.removesuffix(SUFFIX)
        if base == name or base not in info.views:
            known = ", ".join(view + SUFFIX for view in info.views if not view.endswith(SUFFIX))
            raise ValueError(
                f"views: {name!r} is the template of no view here; there can be {known}"
            )
        branches = [info.views[view]["branch"] for view in (base, name)]
        if branches[0] != branches[1]:
            raise ValueError(
                f"view {name} is encoded by {branches[1]} and {base} by {branches[0]}; "
                f"--set views.{name}.branch={branches[0]}"
            )
        if info.views[name]["role"] == "negative":
            raise ValueError(f"view {name} would be a negative: denoise only the view 'negative'")
        column = info.views[base]["column"]
        if column is None and options.columns is None:
            raise ValueError(f"a part makes view {base}: say in columns which column it is made of")
        columns.append(column or "text")
    return options.model_copy(update={"columns": options.columns or tuple(columns)})


def _kept_before(options: TemplateDenoisingOptions, info: RunInfo) -> list[str]:
    if not info.stores:
        return []
    return [
        f"{', '.join(info.stores)}: what a store encodes itself is compared without template "
        f"denoising{' and its dense layer' if options.projection == 'mlp' else ''}"
    ]


@hookimpl
def cse_augmenters() -> list[AugmenterSpec]:
    """Return the augmenter that leaves the template alone."""
    return [
        AugmenterSpec(
            name="template-only",
            summary="the template of a view without the text that it surrounds",
            factory="cse_promptbert.template_only:TemplateOnly",
            options="cse_promptbert.options:TemplateOnlyOptions",
            views=VIEWS,
            provides=lambda options: tuple(f"view:{name}" for name in options.views or VIEWS),
            requires=lambda options: tuple(
                f"column:{name}" for name in dict.fromkeys(options.columns or ()) if name != "text"
            ),
            resolve_options=_with_columns,
            paper=PROMPTBERT,
        )
    ]


@hookimpl
def cse_poolers() -> list[RowPoolerSpec]:
    """Return the row pooler."""
    return [
        RowPoolerSpec(
            name="template",
            summary="the state of the last mask token in a template around the text",
            factory="cse_promptbert.template:TemplatePooler",
            options="cse_promptbert.options:TemplateOptions",
            prompts=True,
            requires=("mask-token",),
            paper=PROMPTBERT,
        )
    ]


@hookimpl
def cse_transforms() -> list[TransformSpec]:
    """Return the transform."""
    return [
        TransformSpec(
            name="template-denoising",
            summary="subtracts the template's own vector from that of the text in it",
            factory="cse_promptbert.template_denoising:TemplateDenoising",
            options="cse_promptbert.options:TemplateDenoisingOptions",
            # h - d is a small difference of large numbers.
            requires=lambda options: (
                *(f"view:{name}{SUFFIX}" for name in options.views),
                "precision:fp32",
            ),
            hint="name it in --aug.template-only.views",
            plan_warnings=_kept_before,
            paper=PROMPTBERT,
        )
    ]


@hookimpl
def cse_views() -> list[ViewSpec]:
    """Return the views of templates, which are no anchors, positives or negatives."""
    return [
        ViewSpec(
            name=f"{view}{SUFFIX}",
            summary=f"the template of view {view} alone",
            column=f"{view}{SUFFIX}",
        )
        for view in ("anchor", "positive", "negative")
    ]


@hookimpl
def cse_losses() -> list[LossSpec]:
    """Return CoT-BERT's loss."""
    return [
        LossSpec(
            name="extended-infonce",
            summary="InfoNCE that keeps positives away from hard negatives too",
            factory="cse_promptbert.extended_infonce:ExtendedInfonce",
            options="cse_promptbert.options:ExtendedInfonceOptions",
            paper=COT_BERT,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return a recipe for each paper."""
    return [
        *records_of_files(RecipeSpec, "cse_promptbert:recipes", "promptbert", paper=PROMPTBERT),
        *records_of_files(RecipeSpec, "cse_promptbert:recipes", "cot-bert", paper=COT_BERT),
    ]


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return the comparison with SimCSE."""
    return records_of_files(
        StudySpec, "cse_promptbert:studies", prefix="promptbert/", paper=PROMPTBERT
    )
