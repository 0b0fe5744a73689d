"""The studies that belong to no paper: every point composes with the starter."""

from __future__ import annotations

import pytest
from cse_study.definition.reading import find_study
from cse_study.planning.composing import Composer
from cse_study.planning.inputs import Inputs
from cse_study.planning.plan import Wish, plan_study
from cse_study.plugin import cse_studies

from cse_cli.plugins.installed import Installed


@pytest.mark.parametrize("name", [spec.name for spec in cse_studies()])
def test_every_point_composes(name: str) -> None:
    definition = find_study(name, Installed())
    plan = plan_study(definition, Wish(seeds=1), Composer(Inputs()))
    assert {cell.point.number for cell in plan.cells} == {p.number for p in definition.points}
    assert len(plan.runs) >= len(plan.cells) - 3


def test_hook_cse_studies() -> None:
    studies = Installed().studies
    assert {spec.name for spec in cse_studies()} <= studies.keys()
    assert studies["cse/adapt"][1].distribution == "cse-study"
