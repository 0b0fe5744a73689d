"""The paper's studies are all there, and each of their points can be composed."""

from __future__ import annotations

import pytest

from tests.fixtures.studies import names, planned

NAMES = names("iscse")


def test_they_are_all_there() -> None:
    assert len(NAMES) == 14


@pytest.mark.parametrize("name", NAMES)
def test_it_is_planned(name: str) -> None:
    plan = planned(name)
    assert plan.points
    assert (plan.definition.study.kind == "train") == bool(plan.cells)
