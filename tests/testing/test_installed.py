"""The kit's suites over every part, recipe and plugin that is installed."""

from __future__ import annotations

from cse_core.testing import all_parts, installed_suites

for _suite in installed_suites():
    globals()[_suite.__name__] = _suite


def test_every_installed_part_has_its_suite() -> None:
    suites = {suite.part for suite in installed_suites() if hasattr(suite, "part")}
    for found in all_parts():
        name = {found.name, found.qualified}
        assert any(kind == found.spec.kind and each in name for kind, each in suites), found.name
