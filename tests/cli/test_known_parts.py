"""The list of parts that hints name before they are installed, against the installed records."""

import pytest

from cse_cli.plugins.directory import known_commands, known_parts
from cse_cli.plugins.installed import Installed
from cse_core.capabilities import Need
from cse_core.errors import CseError
from cse_core.records import (
    ComponentSpec,
    EncoderSpec,
    Kind,
    RecipeSpec,
    SourceSpec,
    StoreSpec,
    SuiteSpec,
)
from cse_core.registry.manager import load_plugins
from cse_core.registry.plugin_info import KnownPart, PluginInfo
from cse_core.registry.registry import Registry
from cse_engine.compose.models import Models
from cse_engine.run.dev_sets import DEV, DEV_OF_ROWS
from tests.core.registry.test_registry import NEGATION
from tests.core.registry.test_registry import info as plugin
from tests.docs.pages import ROOT
from tests.fixtures.methods import refusal

DISTRIBUTIONS = sorted({part.distribution for part in known_parts()})


def test_the_list_is_what_the_distributions_bring() -> None:
    infos = load_plugins().infos
    here = {info.distribution for info in infos}
    brought = set()
    for info in infos:
        for record in info.parts:
            provides: tuple[Need, ...] = ()
            if isinstance(record, ComponentSpec):
                provides = record.provided(record.options_class())
            elif isinstance(record, SuiteSpec) and record.dev:
                provides = (DEV_OF_ROWS if record.dev == "rows" else DEV,)
            # Studies are many, and no message asks for one that is not installed.
            if info.distribution in DISTRIBUTIONS and record.kind != "study":
                brought.add(KnownPart(record.kind, record.name, info.distribution, provides))
    assert brought == {part for part in known_parts() if part.distribution in here}
    folders = [path.parents[1].name for path in ROOT.glob("plugins/*/cse_*/plugin.py")]
    assert {f"cse-{name}" for name in folders} <= {*DISTRIBUTIONS, *known_commands().values()}
    commands = {each.name: each.info.distribution for each in Installed().commands.all}
    assert known_commands().items() <= commands.items()


def error(kind: Kind, name: str, *infos: PluginInfo) -> str:
    return refusal(Registry.from_plugins(infos, known_parts()).find, kind, name)


def test_parts_of_a_known_paper() -> None:
    line = error("aug", "fgsm")
    assert line.endswith("it is a part of cse-mocose, not installed: install cse-mocose")
    assert error("aug", "cse-mocose/fgsm").endswith(": install cse-mocose")
    assert "did you mean fgsm? it is a part of cse-mocose" in error("aug", "fgms")
    assert "it is a part of cse-mocose, not installed" in error("aug", "cse-mocos/fgsm")
    broken = {"status": "broken", "reason": "ImportError: x", "fix": "update cse-mocose"}
    assert error("aug", "fgsm", plugin("cse-mocose:mocose", **broken)).endswith(
        "it is a part of cse-mocose 0.1.0, broken (ImportError: x): update cse-mocose"
    )
    queue = StoreSpec(name="queue", summary="s", factory="m:C")
    said = error("aug", "fgsm", plugin("cse-mocose:mocose", queue))
    assert "cse-mocose" not in said, "the installed version lacks it"
    none = Registry([], known=known_parts())
    for find, distribution in (
        (lambda: none.one(RecipeSpec, "hicl"), "cse-hicl"),
        (lambda: none.one(SourceSpec, "starter"), "cse-starter"),
        (lambda: none.one(EncoderSpec, "starter"), "cse-starter"),
        (lambda: Models(none).look("starter"), "cse-starter"),
    ):
        with pytest.raises(CseError, match=f": install {distribution}"):
            find()
    token = Need("view", "soft_negative")
    none = Registry([], known=known_parts())
    some = Registry.from_plugins([plugin("cse-s:s", NEGATION)], known_parts())
    (found,) = none.providers_elsewhere(token)
    assert (found.kind, found.name, found.distribution) == ("aug", "negation", "cse-sncse")
    assert list(some.providers_elsewhere(token)) == []
