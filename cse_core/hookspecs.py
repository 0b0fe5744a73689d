"""The hooks of cse: what a plugin may implement.

A plugin is a module that an entry point of group ``cse`` names. It has a function for each hook
that it implements, marked with ``@hookimpl``; each takes no argument and returns records
(``cse_core.records``), in a list or any other iterable. The module must import nothing heavy: a
record names the code of a part, which is imported when a run needs it.
"""

# mypy: disable-error-code="empty-body"
from __future__ import annotations

from collections.abc import Iterable
from typing import get_args, get_type_hints

from pluggy import HookimplMarker, HookspecMarker

from cse_core import records
from cse_core.records import ComponentSpec, Kind, Record, ViewSpec

CSE_API_VERSION = 1
"""Raised when a change of hooks or contracts breaks plugins; a plugin may state the one it needs as
``CSE_API_VERSION`` in its plugin module."""
GROUP = "cse"
"""The entry-point group of plugins, and pluggy's project name."""
CORE_VIEWS = (
    ViewSpec(name="anchor", summary="the sentence", role="anchor", column="text"),
    ViewSpec(
        name="positive", summary="its positive", role="positive", column="positive", optional=True
    ),
    ViewSpec(name="negative", summary="a hard negative", role="negative", column="negative"),
)
"""The views of the core itself."""
hookimpl = HookimplMarker(GROUP)
_hookspec = HookspecMarker(GROUP)


@_hookspec
def cse_augmenters() -> Iterable[records.AugmenterSpec]:
    """Return augmenters: ``--aug``.

    Example::

        @hookimpl
        def cse_augmenters():
            summary = "repeats some words"
            factory = "my_package.repetition:Repetition"
            return [AugmenterSpec(name="repetition", summary=summary, factory=factory)]
    """


@_hookspec
def cse_poolers() -> Iterable[records.PoolSpec]:
    """Return slicing parts, row poolers and heads: ``--pool``.

    A ``RowPoolerSpec`` turns the states of a row into its vector, a ``MultiVectorSpec`` makes
    several more of them at a level of their own, a ``HeadSpec`` maps vectors to vectors, a
    ``SliceSpec`` cuts texts and joins the vectors of the slices.

    Example::

        @hookimpl
        def cse_poolers():
            summary = "the largest value of each dimension"
            return [RowPoolerSpec(name="max", summary=summary, factory="my_package.pool:Max")]
    """


@_hookspec
def cse_transforms() -> Iterable[records.TransformSpec]:
    """Return transforms: ``--transform``.

    Example::

        @hookimpl
        def cse_transforms():
            summary = "vectors less the mean of the batch"
            return [TransformSpec(name="centre", summary=summary, factory="my_package.mean:Centre")]
    """


@_hookspec
def cse_positive_miners() -> Iterable[records.MinerSpec]:
    """Return positive miners: ``--positives``.

    Example::

        @hookimpl
        def cse_positive_miners():
            summary = "the next sentence of the document"
            return [MinerSpec(name="next", summary=summary, factory="my_package.miner:Next")]
    """


@_hookspec
def cse_negative_stores() -> Iterable[records.StoreSpec]:
    """Return negative stores: ``--negatives``.

    Example::

        @hookimpl
        def cse_negative_stores():
            summary = "keys of earlier batches"
            return [StoreSpec(name="queue", summary=summary, factory="my_package.queue:Queue")]
    """


@_hookspec
def cse_samplers() -> Iterable[records.SamplerSpec]:
    """Return samplers: ``--sampler``.

    Example::

        @hookimpl
        def cse_samplers():
            summary = "short texts first"
            return [SamplerSpec(name="short", summary=summary, factory="my_package.short:Short")]
    """


@_hookspec
def cse_losses() -> Iterable[records.LossSpec]:
    """Return losses: ``--loss``.

    Example::

        @hookimpl
        def cse_losses():
            summary = "a margin between positives and negatives"
            return [LossSpec(name="margin", summary=summary, factory="my_package.margin:Margin")]
    """


@_hookspec
def cse_branches() -> Iterable[records.BranchSpec]:
    """Return branches: ``--branch``.

    Example::

        @hookimpl
        def cse_branches():
            summary = "an encoder that never changes"
            return [BranchSpec(name="frozen", summary=summary, factory="my_package.branch:Frozen")]
    """


@_hookspec
def cse_metrics() -> Iterable[records.MetricSpec]:
    """Return metrics: ``--metric``.

    Example::

        @hookimpl
        def cse_metrics():
            summary = "mean cosine of two random sentences"
            return [MetricSpec(name="hubness", summary=summary, factory="my_package.hub:Hubness")]
    """


@_hookspec
def cse_adapters() -> Iterable[records.AdapterSpec]:
    """Return adapters: ``--adapter``.

    Example::

        @hookimpl
        def cse_adapters():
            summary = "trains the biases alone"
            return [AdapterSpec(name="biases", summary=summary, factory="my_package.bias:Biases")]
    """


@_hookspec
def cse_recipes() -> Iterable[records.RecipeSpec]:
    """Return recipes, TOML files in the package: ``--recipe``.

    Example::

        @hookimpl
        def cse_recipes():
            return records_of_files(RecipeSpec, "my_package:recipes", paper=PAPER)
    """


@_hookspec
def cse_models() -> Iterable[records.EncoderSpec | records.BackendSpec]:
    """Return encoders in the package, ``--model``, and what reads and runs folders of models.

    Example::

        @hookimpl
        def cse_models():
            summary = "2 layers of 128, for trials"
            return [EncoderSpec(name="small", summary=summary, path="my_package:encoder")]
    """


@_hookspec
def cse_sources() -> Iterable[records.SourceSpec]:
    """Return sources of texts, data sets in the package and readers of files: ``--data``.

    Example::

        @hookimpl
        def cse_sources():
            summary = "2,000 questions of a forum"
            return [SourceSpec(name="forum", summary=summary, factory="my_package.data:Forum")]
    """


@_hookspec
def cse_suites() -> Iterable[records.SuiteSpec]:
    """Return evaluation suites: ``cse eval --suite NAME``.

    Example::

        @hookimpl
        def cse_suites():
            summary = "questions and their answers"
            return [SuiteSpec(name="answers", summary=summary, factory="my_package.suite:Answers")]
    """


@_hookspec
def cse_reporters() -> Iterable[records.ReporterSpec]:
    """Return reporters: ``cse train --report NAME``.

    Example::

        @hookimpl
        def cse_reporters():
            summary = "a message at the end of a run"
            return [ReporterSpec(name="mail", summary=summary, factory="my_package.mail:Mail")]
    """


@_hookspec
def cse_studies() -> Iterable[records.StudySpec]:
    """Return studies: ``cse study NAME``.

    Example::

        @hookimpl
        def cse_studies():
            return records_of_files(StudySpec, "my_package:studies", prefix="mine/")
    """


@_hookspec
def cse_views() -> Iterable[records.ViewSpec]:
    """Return views that recipes can name: ``--views.NAME.branch``, ``loss.NAME.target``.

    Example::

        @hookimpl
        def cse_views():
            summary = "the same sentence by another translator"
            return [ViewSpec(name="other", summary=summary, role="positive", column="other")]
    """


@_hookspec
def cse_schedules() -> Iterable[records.ScheduleSpec]:
    """Return shapes of options that change over a round: ``--loss.NAME.weight "NAME(0.1,1)"``.

    Example::

        @hookimpl
        def cse_schedules():
            summary = "from a to b in equal factors"
            factory = "my_package.schedules:exponential"
            return [ScheduleSpec(name="exponential", summary=summary, factory=factory)]
    """


def _records(hook: str) -> tuple[type[Record], ...]:
    (returned,) = get_args(get_type_hints(globals()[hook])["return"])
    return get_args(returned) or (returned,)


HOOK_RECORDS = {name: _records(name) for name in list(globals()) if name.startswith("cse_")}
"""Each hook, and the classes of its records."""
RECORDS = tuple(record for classes in HOOK_RECORDS.values() for record in classes)
"""All classes of records: of parts, in the order in which recipes list them, then of data."""
NOUNS: dict[str, str] = {record.kind: record.noun for record in RECORDS}
"""What messages call a record of a kind."""
COMPONENT_SPECS: dict[Kind, type[ComponentSpec]] = {
    record.kind: record for record in RECORDS if issubclass(record, ComponentSpec)
}
"""The record of each kind of parts."""
