"""The list of parts that hints name before they are installed, against the installed records."""

from __future__ import annotations

import pytest

from cse_cli.known_parts import known_parts
from cse_core.records import ComponentSpec, SuiteSpec
from cse_core.registry.manager import load_plugins
from cse_core.registry.plugin_info import KnownPart
from cse_core.training.selection import DEV
from cse_core.vocabulary import flatten
from tests.docs.pages import ROOT

DISTRIBUTIONS = sorted({part.distribution for part in known_parts()})


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_list_is_what_the_distribution_brings(distribution: str) -> None:
    infos = [info for info in load_plugins(environ={}).infos if info.distribution == distribution]
    if not infos:
        pytest.skip(f"{distribution} is not installed")
    brought = set()
    for record in (part for info in infos for part in info.parts):
        provides: tuple[str, ...] = ()
        if isinstance(record, ComponentSpec):
            provides = tuple(flatten(record.provided(record.options())))
        elif isinstance(record, SuiteSpec) and record.dev:
            provides = (DEV,)
        brought.add(KnownPart(record.kind, record.name, distribution, provides))
    assert brought == {part for part in known_parts() if part.distribution == distribution}


def test_every_plugin_with_parts_is_in_the_list() -> None:
    folders = [path.parents[1].name for path in ROOT.glob("plugins/*/cse_*/plugin.py")]
    assert {f"cse-{name}" for name in folders} == set(DISTRIBUTIONS)
