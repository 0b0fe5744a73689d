"""The records of the broken parts."""

from cse_core.hookspecs import hookimpl
from cse_core.options import HeadOptions, LossOptions
from cse_core.records import (
    AdapterSpec,
    AugmenterSpec,
    DatasetSpec,
    HeadSpec,
    LossSpec,
    MetricSpec,
    MinerSpec,
    Record,
    StoreSpec,
)

BROKEN = "breaks a promise"


class WrongOptions(LossOptions):
    """Of the loss that does what it is asked to."""

    how: str = "complex"
    """What it does."""


class BentOptions(HeadOptions):
    """Of the head that does what it is asked to."""

    how: str = "detaches"
    """What it does."""


def _spec(kind: type[Record], name: str, **more: object) -> Record:
    factory = "cse_broken.parts:" + "".join(word.title() for word in name.split("-"))
    return kind(name=name, summary=BROKEN, factory=factory, **more)


@hookimpl
def cse_augmenters() -> list[Record]:
    """Augmenters of texts, tokens and embeddings."""
    return [
        _spec(AugmenterSpec, "loses-text", point="text"),
        _spec(AugmenterSpec, "no-text", point="text"),
        _spec(AugmenterSpec, "drops-row", point="tokens"),
        _spec(AugmenterSpec, "writes", point="tokens"),
        _spec(AugmenterSpec, "reshapes", point="word_embeddings"),
        _spec(AugmenterSpec, "not-a-number", point="input_embeddings"),
        _spec(AugmenterSpec, "raises", point="text"),
    ]


@hookimpl
def cse_poolers() -> list[Record]:
    """Heads."""
    bent = _spec(HeadSpec, "bent", options=BentOptions)
    return [_spec(HeadSpec, "wide-head"), _spec(HeadSpec, "raising-head"), bent]


@hookimpl
def cse_adapters() -> list[Record]:
    """An adapter."""
    return [_spec(AdapterSpec, "frozen")]


@hookimpl
def cse_metrics() -> list[Record]:
    """A metric."""
    return [_spec(MetricSpec, "uncounted")]


@hookimpl
def cse_datasets() -> list[Record]:
    """A data set."""
    return [_spec(DatasetSpec, "rows")]


@hookimpl
def cse_positive_miners() -> list[Record]:
    """Miners."""
    return [_spec(MinerSpec, "flat-group"), _spec(MinerSpec, "no-groups")]


@hookimpl
def cse_negative_stores() -> list[Record]:
    """Stores."""
    return [
        _spec(StoreSpec, "short-view", provides=("view:negative",)),
        _spec(StoreSpec, "float-mask"),
        _spec(StoreSpec, "short-rows"),
        _spec(StoreSpec, "keeps-graph"),
        _spec(StoreSpec, "cannot-be-made"),
        _spec(StoreSpec, "fails-late"),
        _spec(StoreSpec, "exits-late"),
        _spec(StoreSpec, "state-no-table"),
        _spec(StoreSpec, "state-of-lambda"),
        _spec(StoreSpec, "sparse-state"),
    ]


@hookimpl
def cse_losses() -> list[Record]:
    """Losses."""
    return [
        _spec(LossSpec, "wrong", options=WrongOptions),
        LossSpec(name="exits", summary=BROKEN, factory="cse_broken.exits:Exits"),
        _spec(LossSpec, "per-anchor"),
        _spec(LossSpec, "detached"),
        _spec(LossSpec, "nan-loss"),
        _spec(LossSpec, "nothing"),
        _spec(LossSpec, "signature"),
        _spec(LossSpec, "no-loss"),
        _spec(LossSpec, "notes-no-list", plan_notes=lambda options, facts: "a text"),
        _spec(LossSpec, "notes-raise", plan_notes=lambda options, facts: facts["no"]),
        _spec(LossSpec, "derive-raises", resolve_options=lambda options, facts: 1 // 0),
        _spec(LossSpec, "derive-other", resolve_options=lambda options, facts: {}),
    ]
