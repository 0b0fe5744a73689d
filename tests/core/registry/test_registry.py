import re
from dataclasses import replace

import pytest

from cse_core.capabilities import Need
from cse_core.errors import CseError
from cse_core.options import LossOptions, Options
from cse_core.records import (
    AugmenterSpec,
    EncoderSpec,
    LossSpec,
    RecipeSpec,
    Record,
    ReporterSpec,
    SliceSpec,
    SourceSpec,
    StoreSpec,
)
from cse_core.registry.plugin_info import PluginInfo
from cse_core.registry.registry import Registry
from tests.fixtures.methods import refusal


class NeedyOptions(LossOptions):
    groups: int


def info(key: str, *parts: Record, **changes: str) -> PluginInfo:
    distribution, _, name = key.partition(":")
    return PluginInfo(
        key=key, name=name, distribution=distribution, version="0.1.0", summary="", module="m",
        hooks=("cse_losses",) if parts else (), parts=parts, **changes,  # type: ignore[arg-type]
    )  # fmt: skip


INFONCE = LossSpec(name="infonce", summary="s", factory="m:C")
TWINS = LossSpec(name="twins", summary="s", factory="m:C", requires=("view:identical",))
QUEUE = StoreSpec(name="queue", summary="s", factory="m:C")
NEGATION = AugmenterSpec(
    name="negation", summary="s", factory="m:C", provides=("view:soft_negative",)
)
SLICES = SliceSpec(name="slices", summary="s", factory="m:C", provides=lambda o: ("level:segment",))
NEEDY = LossSpec(
    name="needy", summary="s", factory="m:C", options=f"{__name__}:NeedyOptions",
    provides=lambda o: ("pairs",),
)  # fmt: skip


def registry(*infos: PluginInfo) -> Registry:
    return Registry.from_plugins([info("cse-toolkit:basics", INFONCE), *infos])


def error(made: Registry, kind: str, name: str, where: str | None = None) -> str:
    return refusal(made.find, kind, name, where=where)


def test_parts_are_sorted_by_name_and_know_their_owner() -> None:
    made = registry(info("cse-ifcl:ifcl", TWINS, QUEUE), info("a:a", NEEDY))
    assert [part.name for part in made.parts("loss")] == ["infonce", "needy", "twins"]
    assert {part.spec.kind for part in made.parts()} == {"loss", "negatives"}
    assert made.parts("metric") == ()
    found = made.find("loss", "twins")
    assert found.spec is TWINS
    assert (found.label, found.plugin) == ("cse-ifcl 0.1.0", "cse-ifcl:ifcl")
    assert (found.spec.kind, found.name, found.qualified) == ("loss", "twins", "cse-ifcl/twins")


def test_data_records_have_getters() -> None:
    records: list[Record] = [
        RecipeSpec(name="simcse", summary="s", path="p:f"),
        EncoderSpec(name="starter", summary="s", path="p:f"),
        SourceSpec(name="starter", summary="s", factory="m:C"),
    ]
    made = registry(info("cse-x:x", *records))
    assert made.one(RecipeSpec, "simcse").spec is records[0]
    assert made.one(EncoderSpec, "starter").spec is records[1]
    assert made.one(SourceSpec, "cse-x/starter").spec is records[2]
    for found, record in zip(
        map(made.all, (RecipeSpec, EncoderSpec, SourceSpec)), records, strict=True
    ):
        assert [part.spec for part in found] == [record]
    assert made.parts() == registry().parts()


def test_equal_names() -> None:
    made = registry(info("cse-ifcl:ifcl", TWINS), info("cse-other:o", TWINS, NEEDY))
    assert made.find("loss", "needy").distribution == "cse-other"
    assert error(made, "loss", "twins", "--loss") == (
        "--loss: more than one loss has this name (got 'twins'); "
        "write cse-ifcl:ifcl/twins or cse-other:o/twins"
    )
    assert made.find("loss", "cse-other/twins").plugin == "cse-other:o"
    assert made.find("loss", "CSE_Other/twins").plugin == "cse-other:o"
    assert made.find("loss", "cse-other:o/twins").plugin == "cse-other:o"
    made = registry(info("cse-ifcl:ifcl", TWINS), info("cse-other:o", TWINS))
    assert made.find("loss", "twins", near="cse-other").plugin == "cse-other:o"
    assert made.find("loss", "infonce", near="cse-other").plugin == "cse-toolkit:basics"
    with pytest.raises(CseError, match="more than one loss"):
        made.find("loss", "twins", near="cse-third")
    made = registry(info("cse-x:a", TWINS), info("cse-x:b", TWINS))
    assert "write cse-x:a/twins or cse-x:b/twins" in error(made, "loss", "twins")
    assert "write cse-x:a/twins" in error(made, "loss", "cse-x/twins")
    assert made.find("loss", "cse-x:b/twins").plugin == "cse-x:b"


def test_options_are_imported_when_first_asked_for() -> None:
    assert (TWINS.options_class, NEEDY.options_class) == (LossOptions, NeedyOptions)
    assert ReporterSpec(name="notes", summary="s", factory="m:C").options_class is Options
    for options, line in {
        "no.such:Options": "loss.needy: no.such:Options cannot be imported: No module named 'no'",
        f"{__name__}:Nobody": f"loss.needy: module {__name__} has no Nobody; correct the name in",
        f"{__name__}:info": "loss.needy: its options are not a subclass of cse_core.options.Loss",
        "cse_core.options:HeadOptions": "LossOptions (got 'cse_core.options:HeadOptions'); correct",
    }.items():
        with pytest.raises(CseError, match=re.escape(line)):
            _ = replace(NEEDY, options=options).options_class


def test_what_an_unknown_name_may_mean() -> None:
    assert error(registry(), "loss", "infonse") == (
        "loss: unknown loss (got 'infonse'); did you mean infonce?"
    )
    assert error(registry(), "loss", "zzzzzz").endswith("known: infonce")
    assert error(registry(), "metric", "zzzzzz").endswith("there are none")
    failed = info("mine:mine", status="broken", reason="No module named 'nothing'")
    line = error(registry(failed), "loss", "mine")
    assert "not loaded: mine:mine is broken: No module named 'nothing' (see cse list" in line
    made = registry(info("cse-mocose:mocose", QUEUE))
    assert error(made, "loss", "queue").endswith(
        "queue is a negative store: write --negatives queue"
    )
    assert made.has("negatives", "queue") and not made.has("loss", "queue")
    assert error(made, "negatives", "cse-mocos/queue").endswith("did you mean queue?")


def test_providers_are_installed_parts() -> None:
    made = registry(info("cse-x:x", SLICES, NEEDY), info("cse-sncse:sncse", NEGATION))
    assert [part.name for part in made.providers(Need("level", "segment"))] == ["slices"]
    assert made.providers(Need("pairs")) == [], "an option of it must be set"
    broken = replace(NEGATION, options="no.such:Options", provides=lambda o: ("pairs",))
    assert registry(info("cse-x:x", broken)).providers(Need("pairs")) == []
    (provider,) = made.providers(Need("view", "soft_negative"))
    assert provider.qualified == "cse-sncse/negation"
