"""The records of the broken parts."""

from cse_core.hookspecs import hookimpl
from cse_core.records import (
    AdapterSpec,
    AugmenterSpec,
    HeadSpec,
    LossSpec,
    MetricSpec,
    MinerSpec,
    Record,
    RowPoolerSpec,
    ScheduleSpec,
    SourceSpec,
    StoreSpec,
)

BROKEN = "breaks a promise"


def _specs(kind: type[Record], made: str, *names: str, **more: object) -> list[Record]:
    """Return a record for each name, all made by one class."""
    factory = f"cse_broken.parts:{made}"
    return [kind(name=name, summary=BROKEN, factory=factory, **more) for name in names]


@hookimpl
def cse_augmenters() -> list[Record]:
    return [
        *_specs(AugmenterSpec, "Changed", "loses-text", "no-text", "raises", point="text"),
        *_specs(AugmenterSpec, "Changed", "drops-row", "writes", "writes-late", point="tokens"),
        *_specs(AugmenterSpec, "Changed", "reshapes", point="word_embeddings"),
        *_specs(AugmenterSpec, "Changed", "not-a-number", point="input_embeddings"),
    ]


@hookimpl
def cse_poolers() -> list[Record]:
    return [
        *_specs(HeadSpec, "WideHead", "wide-head"),
        *_specs(HeadSpec, "RaisingHead", "raising-head"),
        *_specs(RowPoolerSpec, "Remembers", "remembers"),
        *_specs(HeadSpec, "Bent", "bent", options="cse_broken.options:BentOptions"),
    ]


@hookimpl
def cse_schedules() -> list[Record]:
    return [ScheduleSpec(name="over", summary=BROKEN, factory="cse_broken.parts:over")]


@hookimpl
def cse_adapters() -> list[Record]:
    return _specs(AdapterSpec, "Frozen", "frozen")


@hookimpl
def cse_metrics() -> list[Record]:
    return _specs(MetricSpec, "Uncounted", "uncounted")


@hookimpl
def cse_sources() -> list[Record]:
    return _specs(SourceSpec, "Rows", "rows")


@hookimpl
def cse_positive_miners() -> list[Record]:
    made = {"rounds": True, "provides": ("pairs",), "options": "cse_broken.options:RoundsOptions"}
    return [
        *_specs(MinerSpec, "Grouped", "flat-group", "no-groups"),
        *_specs(MinerSpec, "Rounds", "rounds", **made),
    ]


@hookimpl
def cse_negative_stores() -> list[Record]:
    return [
        *_specs(StoreSpec, "ShortView", "short-view", provides=("view:negative",)),
        *_specs(StoreSpec, "Misfits", "float-mask", "short-rows"),
        *_specs(StoreSpec, "KeepsGraph", "keeps-graph"),
        *_specs(StoreSpec, "CannotBeMade", "cannot-be-made"),
        *_specs(StoreSpec, "EndsLate", "fails-late", "exits-late"),
        *_specs(StoreSpec, "Stateful", "state-no-table", "state-of-lambda", "sparse-state"),
    ]


@hookimpl
def cse_losses() -> list[Record]:
    bare = "OfWrongRecord"
    return [
        *_specs(LossSpec, "Wrong", "wrong", options="cse_broken.options:WrongOptions"),
        *_specs(LossSpec, "Signature", "signature"),
        *_specs(LossSpec, "TwoStates", "two-states"),
        *_specs(LossSpec, "ModuleRemembers", "module-remembers"),
        *_specs(LossSpec, "HoldsLayer", "holds-layer"),
        *_specs(LossSpec, "NoLoss", "no-loss"),
        LossSpec(name="exits", summary=BROKEN, factory="cse_broken.exits:Exits"),
        *_specs(LossSpec, bare, "notes-no-list", plan_notes=lambda options, facts: "a text"),
        *_specs(LossSpec, bare, "notes-raise", plan_notes=lambda options, facts: facts["no"]),
        *_specs(LossSpec, bare, "derive-raises", resolve_options=lambda options, facts: 1 // 0),
        *_specs(LossSpec, bare, "derive-other", resolve_options=lambda options, facts: {}),
    ]
