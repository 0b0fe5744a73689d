"""The kit's suites over every part, recipe and plugin that is installed.

Those of the distributions in ``plugins`` are in their own tests, and here it is seen that none is
missing; everything else that is installed is run.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cse_testkit import installed_registry, installed_suites

PLUGINS = Path(__file__).parents[2]
OWN = {
    f"cse-{each.parent.name}": each
    for each in PLUGINS.glob("*/tests")
    if [*each.parent.glob("*/plugin.py")]
}

for _suite in installed_suites(without=OWN):
    globals()[_suite.__name__] = _suite


def test_every_other_installed_part_has_its_suite_here() -> None:
    suites = {suite.part for suite in installed_suites(without=OWN) if hasattr(suite, "part")}
    for found in installed_registry().parts():
        name = {found.name, found.qualified}
        here = any(kind == found.spec.kind and each in name for kind, each in suites)
        assert here or found.distribution in OWN, found.name


@pytest.mark.parametrize("distribution", sorted(OWN))
def test_a_plugin_of_this_repository_holds_its_suites_itself(distribution: str) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in OWN[distribution].glob("test_*.py"))
    assert f'distribution = "{distribution}"' in text
    for part in installed_registry().parts():
        if part.distribution == distribution:
            assert f'part = ("{part.spec.kind}", "{part.name}")' in text, part.name
    for recipe in installed_registry().recipes():
        if recipe.distribution == distribution:
            assert f'recipe = "{recipe.name}"' in text, recipe.name
