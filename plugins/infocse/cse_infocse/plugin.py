"""The records of InfoCSE; imports no torch."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import AugmenterSpec, MinerSpec, RecipeSpec, SliceSpec, StudySpec
from cse_infocse.papers import CONPONO, CPC, DECLUTR, LATENT_RETRIEVAL, MIRROR_BERT, PAPER

if TYPE_CHECKING:
    from cse_infocse.options import (
        ClusterOptions,
        ContextOptions,
        IdcLabelsOptions,
        LabelsOptions,
        SpanOptions,
    )

DOCUMENT = "column:document"
LEVEL = "slice"
"""The level of the sentences that a document is cut into."""


def _context_needs(options: ContextOptions) -> tuple[str, ...]:
    return (DOCUMENT, f"level:{LEVEL}") if options.context == "mean" else (DOCUMENT,)


def _span_needs(options: SpanOptions) -> tuple[str, ...]:
    return (DOCUMENT, f"level:{LEVEL}") if options.combine == "mean" else (DOCUMENT,)


def _label_needs(options: LabelsOptions) -> tuple[str, ...]:
    needs = (DOCUMENT, "column:title") if options.file is None else ()
    return (*needs, f"level:{LEVEL}") if options.document == "mean" else needs


def _both_needs(options: IdcLabelsOptions) -> tuple[str, ...]:
    return tuple(dict.fromkeys((DOCUMENT, *_label_needs(options))))


def _with_its_file(options: LabelsOptions, facts: object) -> LabelsOptions:
    """Return the options; a plan of labels that are not there is of no use."""
    if options.file is not None and not Path(options.file).expanduser().is_file():
        raise ValueError(
            f"no file {options.file!r}; name articles with titles, or a table with text "
            "and positive"
        )
    return options


def _until(most: int | None) -> str:
    until = "until the dev score stops improving, 2 without a dev set"
    return until if most is None else f"at most {most}, or {until}"


def _rounds(options: ClusterOptions, facts: object) -> list[str]:
    return [f"rounds mined by the current encoder: {_until(options.rounds)}"]


def _turns(options: IdcLabelsOptions, facts: object) -> list[str]:
    after = "; another stage of them after the last" if options.idc_after else ""
    return [
        f"rounds of clusters before each round of labels: {_until(options.idc_rounds)}{after}",
        f"rounds of labels: {_until(options.rounds)}",
        *_sizes(options, facts),
    ]


def _sizes(options: LabelsOptions, facts: object) -> list[str]:
    """Say what takes the place of the run's own options in a round."""
    return [
        f"a round of labels has batches of {options.batch_size} and at most {options.epochs:g} "
        "epochs, not those of train; chunk_size and patience are the miner's too"
    ]


OWN_TEXTS = ("text",)
"""Columns that a round brings beside ``positive`` where its texts are not rows of the data."""


@hookimpl
def cse_augmenters() -> list[AugmenterSpec]:
    """Return the augmenter of Mirror-BERT."""
    return [
        AugmenterSpec(
            name="span-mask",
            summary="a few characters in a row become the mask token (Mirror-BERT)",
            factory="cse_infocse.span_mask:SpanMask",
            options="cse_infocse.options:SpanMaskOptions",
            point="text",
            requires=("mask-token",),
            paper=MIRROR_BERT,
        )
    ]


@hookimpl
def cse_poolers() -> list[SliceSpec]:
    """Return the slice stage."""
    return [
        SliceSpec(
            name="sentences",
            summary="a document as its sentences, joined by the mean of their vectors",
            factory="cse_infocse.sentences:Sentences",
            options="cse_infocse.options:SentencesOptions",
            provides=(f"level:{LEVEL}",),
            paper=PAPER,
        )
    ]


@hookimpl
def cse_positive_miners() -> list[MinerSpec]:
    """Return clustering, the weak starts and labelled pairs."""
    miner = partial(MinerSpec, rounds=True, provides=("pairs",), requires=(DOCUMENT,), paper=PAPER)
    return [
        miner(
            name="idc",
            summary="sentences of a document that cluster together, mined in each round",
            factory="cse_infocse.clusters:Idc",
            options="cse_infocse.options:IdcOptions",
            plan_notes=_rounds,
        ),
        miner(
            name="idc-kmeans",
            summary="sentences that share a cluster of k-means over all documents",
            factory="cse_infocse.idc_kmeans:IdcKmeans",
            options="cse_infocse.options:IdcKmeansOptions",
            plan_notes=_rounds,
        ),
        miner(
            name="idc-labels",
            summary="stages of clusters and rounds of labelled pairs in turn (InfoCSE++)",
            factory="cse_infocse.labels:IdcLabels",
            options="cse_infocse.options:IdcLabelsOptions",
            requires=_both_needs,
            plan_notes=_turns,
            resolve_options=_with_its_file,
            columns=OWN_TEXTS,
        ),
        miner(
            name="labels",
            summary="labelled pairs: titles and documents, or any two texts; optionally only a few",
            factory="cse_infocse.labels:Labels",
            options="cse_infocse.options:LabelsOptions",
            requires=_label_needs,
            plan_notes=_sizes,
            resolve_options=_with_its_file,
            columns=OWN_TEXTS,
        ),
        miner(
            name="neighbour",
            summary="near sentences of a document",
            factory="cse_infocse.starts:Neighbour",
            options="cse_infocse.options:NeighbourOptions",
            paper=CONPONO,
        ),
        miner(
            name="inverse-cloze",
            summary="a sentence and those around it",
            factory="cse_infocse.starts:InverseCloze",
            options="cse_infocse.options:InverseClozeOptions",
            paper=LATENT_RETRIEVAL,
            requires=_context_needs,
            columns=OWN_TEXTS,
        ),
        miner(
            name="preceding-context",
            summary="a sentence and those before it",
            factory="cse_infocse.starts:PrecedingContext",
            options="cse_infocse.options:ContextOptions",
            paper=CPC,
            requires=_context_needs,
            columns=OWN_TEXTS,
        ),
        miner(
            name="span",
            summary="spans of a document that overlap, touch or contain each other",
            factory="cse_infocse.span:Span",
            options="cse_infocse.options:SpanOptions",
            paper=DECLUTR,
            requires=_span_needs,
            columns=OWN_TEXTS,
        ),
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the starts, clustering over one, and fine-tuning on labels."""
    return records_of_files(RecipeSpec, "cse_infocse:recipes", paper=PAPER)


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return the tables and figures of the paper."""
    return records_of_files(StudySpec, "cse_infocse:studies", prefix="infocse/", paper=PAPER)
