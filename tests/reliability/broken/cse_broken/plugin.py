"""The records of the broken parts."""

from cse_core.hookspecs import hookimpl
from cse_core.records import AugmenterSpec, HeadSpec, LossSpec, MinerSpec, Record, StoreSpec

BROKEN = "breaks a promise"


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
    return [_spec(HeadSpec, "wide-head"), _spec(HeadSpec, "raising-head")]


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
    ]


@hookimpl
def cse_losses() -> list[Record]:
    """Losses."""
    return [
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
