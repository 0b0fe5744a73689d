"""The hooks of cse: what a plugin may implement.

A plugin is a module that an entry point of group ``cse`` names. It has a function for each hook
that it implements, marked with ``@hookimpl``; each takes no argument and returns records
(``cse_core.records``), in a list or any other iterable. The module must import nothing heavy: a
record names the code of a part, which is imported when a run needs it.
"""

# mypy: disable-error-code="empty-body"
from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pluggy import HookimplMarker, HookspecMarker

from cse_core.records import (
    AdapterSpec,
    AugmenterSpec,
    BackendSpec,
    BranchSpec,
    ComponentSpec,
    EncoderSpec,
    Kind,
    LossSpec,
    MetricSpec,
    MinerSpec,
    PoolSpec,
    RecipeSpec,
    Record,
    ReporterSpec,
    SamplerSpec,
    ScheduleSpec,
    SourceSpec,
    StoreSpec,
    StudySpec,
    SuiteSpec,
    TransformSpec,
    ViewSpec,
)

CSE_API_VERSION = 1
"""Raised when a change of hooks or contracts breaks plugins; a plugin may state the one it needs as
``CSE_API_VERSION`` in its plugin module."""
GROUP = "cse"
"""The entry-point group of plugins, and pluggy's project name."""


class RecordKind(NamedTuple):
    """A class of records, the hook that returns some of them, and what messages call one.

    ``record.kind`` is their name in recipes, flags and listings; ``help`` is that of a part's flag.
    """

    record: type[Record]
    hook: str
    noun: str
    help: str = ""


RECORD_KINDS = (
    RecordKind(AugmenterSpec, "cse_augmenters", "augmenter", "Change the input of a view."),
    RecordKind(PoolSpec, "cse_poolers", "pooler", "Make one vector of token states."),
    RecordKind(TransformSpec, "cse_transforms", "transform", "Change the vectors of a batch."),
    RecordKind(MinerSpec, "cse_positive_miners", "positive miner", "Find more positives."),
    RecordKind(StoreSpec, "cse_negative_stores", "negative store", "Add or weigh negatives."),
    RecordKind(SamplerSpec, "cse_samplers", "sampler", "Choose the rows of each batch."),
    RecordKind(LossSpec, "cse_losses", "loss", "Minimise this; several are summed."),
    RecordKind(BranchSpec, "cse_branches", "branch", "Encode views with a copy of the encoder."),
    RecordKind(MetricSpec, "cse_metrics", "metric", "Compute a number on dev sets."),
    RecordKind(AdapterSpec, "cse_adapters", "adapter", "Train only some weights of the encoder."),
    RecordKind(RecipeSpec, "cse_recipes", "recipe"),
    RecordKind(EncoderSpec, "cse_models", "encoder"),
    RecordKind(BackendSpec, "cse_models", "backend"),
    RecordKind(SourceSpec, "cse_sources", "data set"),
    RecordKind(SuiteSpec, "cse_suites", "suite"),
    RecordKind(ReporterSpec, "cse_reporters", "reporter"),
    RecordKind(StudySpec, "cse_studies", "study"),
    RecordKind(ViewSpec, "cse_views", "view"),
    RecordKind(ScheduleSpec, "cse_schedules", "schedule"),
)
"""All kinds of records: of parts, in the order in which recipes list them, then of data."""
COMPONENT_SPECS: dict[Kind, type[ComponentSpec]] = {
    kind.record.kind: kind.record for kind in RECORD_KINDS if issubclass(kind.record, ComponentSpec)
}
"""The record of each kind of parts."""
CORE_VIEWS = (
    ViewSpec(name="anchor", summary="the sentence", role="anchor", column="text"),
    ViewSpec(
        name="positive", summary="its positive", role="positive", column="positive", optional=True
    ),
    ViewSpec(name="negative", summary="a hard negative", role="negative", column="negative"),
)
"""The views of the core itself."""
HOOK_RECORDS: dict[str, tuple[type[Record], ...]] = {
    kind.hook: tuple(other.record for other in RECORD_KINDS if other.hook == kind.hook)
    for kind in RECORD_KINDS
}
"""Each hook, and the classes of its records."""

hookimpl = HookimplMarker(GROUP)
_hookspec = HookspecMarker(GROUP)


@_hookspec
def cse_augmenters() -> Iterable[AugmenterSpec]:
    """Return augmenters: ``--aug``.

    Example::

        @hookimpl
        def cse_augmenters():
            summary = "repeats some words"
            factory = "my_package.repetition:Repetition"
            return [AugmenterSpec(name="repetition", summary=summary, factory=factory)]
    """


@_hookspec
def cse_poolers() -> Iterable[PoolSpec]:
    """Return slicing parts, row poolers and heads: ``--pool``.

    A ``RowPoolerSpec`` turns the states of a row into its vector, a ``HeadSpec`` maps vectors to
    vectors, a ``SliceSpec`` cuts texts and joins the vectors of the slices.

    Example::

        @hookimpl
        def cse_poolers():
            summary = "the largest value of each dimension"
            return [RowPoolerSpec(name="max", summary=summary, factory="my_package.pool:Max")]
    """


@_hookspec
def cse_transforms() -> Iterable[TransformSpec]:
    """Return transforms: ``--transform``.

    Example::

        @hookimpl
        def cse_transforms():
            summary = "vectors less the mean of the batch"
            return [TransformSpec(name="centre", summary=summary, factory="my_package.mean:Centre")]
    """


@_hookspec
def cse_positive_miners() -> Iterable[MinerSpec]:
    """Return positive miners: ``--positives``.

    Example::

        @hookimpl
        def cse_positive_miners():
            summary = "the next sentence of the document"
            return [MinerSpec(name="next", summary=summary, factory="my_package.miner:Next")]
    """


@_hookspec
def cse_negative_stores() -> Iterable[StoreSpec]:
    """Return negative stores: ``--negatives``.

    Example::

        @hookimpl
        def cse_negative_stores():
            summary = "keys of earlier batches"
            return [StoreSpec(name="queue", summary=summary, factory="my_package.queue:Queue")]
    """


@_hookspec
def cse_samplers() -> Iterable[SamplerSpec]:
    """Return samplers: ``--sampler``.

    Example::

        @hookimpl
        def cse_samplers():
            summary = "short texts first"
            return [SamplerSpec(name="short", summary=summary, factory="my_package.short:Short")]
    """


@_hookspec
def cse_losses() -> Iterable[LossSpec]:
    """Return losses: ``--loss``.

    Example::

        @hookimpl
        def cse_losses():
            summary = "a margin between positives and negatives"
            return [LossSpec(name="margin", summary=summary, factory="my_package.margin:Margin")]
    """


@_hookspec
def cse_branches() -> Iterable[BranchSpec]:
    """Return branches: ``--branch``.

    Example::

        @hookimpl
        def cse_branches():
            summary = "an encoder that never changes"
            return [BranchSpec(name="frozen", summary=summary, factory="my_package.branch:Frozen")]
    """


@_hookspec
def cse_metrics() -> Iterable[MetricSpec]:
    """Return metrics: ``--metric``.

    Example::

        @hookimpl
        def cse_metrics():
            summary = "mean cosine of two random sentences"
            return [MetricSpec(name="hubness", summary=summary, factory="my_package.hub:Hubness")]
    """


@_hookspec
def cse_adapters() -> Iterable[AdapterSpec]:
    """Return adapters: ``--adapter``.

    Example::

        @hookimpl
        def cse_adapters():
            summary = "trains the biases alone"
            return [AdapterSpec(name="biases", summary=summary, factory="my_package.bias:Biases")]
    """


@_hookspec
def cse_recipes() -> Iterable[RecipeSpec]:
    """Return recipes, TOML files in the package: ``--recipe``.

    Example::

        @hookimpl
        def cse_recipes():
            return records_of_files(RecipeSpec, "my_package:recipes", paper=PAPER)
    """


@_hookspec
def cse_models() -> Iterable[EncoderSpec | BackendSpec]:
    """Return encoders in the package, ``--model``, and what reads and runs folders of models.

    Example::

        @hookimpl
        def cse_models():
            summary = "2 layers of 128, for trials"
            return [EncoderSpec(name="small", summary=summary, path="my_package:encoder")]
    """


@_hookspec
def cse_sources() -> Iterable[SourceSpec]:
    """Return sources of texts, data sets in the package and readers of files: ``--data``.

    Example::

        @hookimpl
        def cse_sources():
            summary = "2,000 questions of a forum"
            return [SourceSpec(name="forum", summary=summary, factory="my_package.data:Forum")]
    """


@_hookspec
def cse_suites() -> Iterable[SuiteSpec]:
    """Return evaluation suites: ``cse eval --suite NAME``.

    Example::

        @hookimpl
        def cse_suites():
            summary = "questions and their answers"
            return [SuiteSpec(name="answers", summary=summary, factory="my_package.suite:Answers")]
    """


@_hookspec
def cse_reporters() -> Iterable[ReporterSpec]:
    """Return reporters: ``cse train --report NAME``.

    Example::

        @hookimpl
        def cse_reporters():
            summary = "a message at the end of a run"
            return [ReporterSpec(name="mail", summary=summary, factory="my_package.mail:Mail")]
    """


@_hookspec
def cse_studies() -> Iterable[StudySpec]:
    """Return studies: ``cse study NAME``.

    Example::

        @hookimpl
        def cse_studies():
            return records_of_files(StudySpec, "my_package:studies", prefix="mine/")
    """


@_hookspec
def cse_views() -> Iterable[ViewSpec]:
    """Return views that recipes can name: ``--views.NAME.branch``, ``loss.NAME.target``.

    Example::

        @hookimpl
        def cse_views():
            summary = "the same sentence by another translator"
            return [ViewSpec(name="other", summary=summary, role="positive", column="other")]
    """


@_hookspec
def cse_schedules() -> Iterable[ScheduleSpec]:
    """Return shapes of options that change over a round: ``--loss.NAME.weight "NAME(0.1,1)"``.

    Example::

        @hookimpl
        def cse_schedules():
            summary = "from a to b in equal factors"
            factory = "my_package.schedules:exponential"
            return [ScheduleSpec(name="exponential", summary=summary, factory=factory)]
    """
