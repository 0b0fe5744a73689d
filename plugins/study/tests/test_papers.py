"""The studies of the papers are all there, and each of their points can be composed."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from tests.fixtures.studies import made_small, names, planned

COUNTS = {"hicl": 21, "iscse": 14, "infocse": 13, "ifcl": 11, "mocose": 23}
NAMES = [name for paper in COUNTS for name in names(paper)]
MADE: defaultdict[str, set[str]] = defaultdict(set)
"""The kinds of runs that were made of each paper."""


@pytest.mark.parametrize("paper", COUNTS)
def test_they_are_all_there(paper: str) -> None:
    assert len(names(paper)) == COUNTS[paper]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("studies")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_its_runs_are_made(name: str, folder: Path) -> None:
    paper, _, _ = name.partition("/")
    (folder / paper).mkdir(exist_ok=True)
    made_small(name, folder / paper, MADE[paper])


@pytest.mark.parametrize("name", NAMES)
def test_it_is_planned(name: str) -> None:
    plan = planned(name)
    assert plan.points
    assert (plan.definition.study.kind == "train") == bool(plan.cells)
