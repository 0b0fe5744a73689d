"""The records of IFCL; imports no torch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import (
    AugmenterSpec,
    LossSpec,
    MetricSpec,
    Paper,
    RecipeSpec,
    StoreSpec,
    StudySpec,
    ViewSpec,
)
from cse_core.run_info import RunInfo

if TYPE_CHECKING:
    from cse_ifcl.options import FusionOptions, LexiconOptions, TwinsOptions

PAPER = Paper(
    "Xiao, Li and Chen: Identical and Fraternal Twins, arXiv 2307.10932, 2023",
    "cse_ifcl:papers/xiao-etal-2023-identical.bib",
)

EDA = Paper(
    "Wei and Zou: EDA, EMNLP 2019; Figure 4a of IFCL", "cse_ifcl:papers/wei-zou-2019-eda.bib"
)

_LANGUAGE = re.compile(r"[a-z]{2}")


def _checked(options: FusionOptions, facts: RunInfo) -> FusionOptions:
    """Refuse a folder that is not there; what a bare name stands for is known when it is loaded."""
    name = options.model
    if name is None or not name.startswith((".", "/", "~")):
        return options
    if not Path(name).expanduser().exists():
        raise ValueError(f"model = {name}: no such folder; name another")
    return options


def _many_languages(facts: RunInfo) -> bool:
    """Check whether an encoder's name or family implies a multilingual vocabulary."""
    said = f"{facts.family} {facts.model}".lower()
    return any(word in said for word in ("multilingual", "xlm", "labse", "mdeberta"))


def _vocabulary(options: FusionOptions, facts: RunInfo) -> list[str]:
    """Return a line where a vocabulary that was not made for it reads the other language."""
    if options.model is not None or facts.origin == "starter" or _many_languages(facts):
        return []
    return [
        f"column {options.column} is read by the embeddings of {facts.model} itself, whose "
        "vocabulary may not be made for that language: set its option model to one of that language"
    ]


def _stored(options: FusionOptions, facts: RunInfo) -> list[str]:
    """Return a line for each store that holds fraternal twins, where the paper's holds anchors."""
    views = options.views or ("positive",)
    return [
        f"negatives.{name} holds view {store['view']}, the fraternal twins; the paper's queue "
        f"holds anchors: --negatives.{name}.view anchor"
        for name, store in facts.stores.items()
        if store["view"] in views
    ]


def _with_lexicon(options: LexiconOptions, facts: RunInfo) -> LexiconOptions:
    """Refuse a lexicon that is not there."""
    if options.lexicon is not None and not Path(options.lexicon).expanduser().is_file():
        raise ValueError(f"lexicon = {options.lexicon}: no such file; name another")
    return options


def _of_a_lexicon(options: LexiconOptions, facts: RunInfo) -> LexiconOptions:
    """Refuse synonyms of nothing."""
    if options.lexicon is None:
        raise ValueError("has no synonyms; name a table of them with its option lexicon")
    return _with_lexicon(options, facts)


def _translation(names: Sequence[str], text: str) -> str | None:
    """Return the column of the other language, where a file has English and one other."""
    others = [name for name in names if _LANGUAGE.fullmatch(name) and name not in ("en", "id")]
    return others[0] if text == "en" and len(others) == 1 else None


@hookimpl
def cse_views() -> list[ViewSpec]:
    """Return the two twins of a sentence."""
    return [
        ViewSpec(
            name="identical",
            summary="the sentence again, which augmenters leave as it is",
            role="positive",
            column="text",
        ),
        ViewSpec(
            name="fraternal",
            summary="the sentence in a second language",
            column="fraternal",
            find=_translation,
        ),
    ]


@hookimpl
def cse_augmenters() -> list[AugmenterSpec]:
    """Return the fusion of two languages' embeddings, and the augmentations beside it."""
    return [
        AugmenterSpec(
            name="fusion",
            summary="mixes a sentence's embeddings with those of its translation",
            factory="cse_ifcl.fusion:Fusion",
            options="cse_ifcl.options:FusionOptions",
            point=lambda options: options.at,
            reads=lambda options: {options.column: "text"},
            hint="make it as docs/translate.md shows",
            resolve_options=_checked,
            paper=PAPER,
            plan_notes=_stored,
            plan_warnings=_vocabulary,
        ),
        AugmenterSpec(
            name="random-deletion",
            summary="deletes some words",
            factory="cse_ifcl.words:RandomDeletion",
            options="cse_ifcl.options:WordOptions",
            point="text",
            paper=EDA,
        ),
        AugmenterSpec(
            name="synonym",
            summary="replaces some words by synonyms of a file",
            factory="cse_ifcl.words:Synonym",
            options="cse_ifcl.options:LexiconOptions",
            point="text",
            resolve_options=_of_a_lexicon,
            paper=EDA,
        ),
        AugmenterSpec(
            name="random-insertion",
            summary="inserts synonyms of some words, or words of the text itself",
            factory="cse_ifcl.words:RandomInsertion",
            options="cse_ifcl.options:LexiconOptions",
            point="text",
            resolve_options=_with_lexicon,
            paper=EDA,
        ),
    ]


@hookimpl
def cse_negative_stores() -> list[StoreSpec]:
    """Return the queue that forgets."""
    return [
        StoreSpec(
            name="hippocampus",
            summary="anchors of earlier batches, which weigh less the older they are",
            factory="cse_ifcl.hippocampus:Hippocampus",
            options="cse_ifcl.options:HippocampusOptions",
            keeps=True,
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
            options="cse_ifcl.options:TwinsOptions",
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
            summary="mutual information of the twins and of the highest-scored pairs, with N",
            factory="cse_ifcl.mutual_information:MutualInformation",
            options="cse_ifcl.options:MutualInformationOptions",
            paper=PAPER,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the English and the Chinese setting."""
    return records_of_files(RecipeSpec, "cse_ifcl:recipes", paper=PAPER)


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return the tables and figures of the paper."""
    return records_of_files(StudySpec, "cse_ifcl:studies", prefix="ifcl/", paper=PAPER)
