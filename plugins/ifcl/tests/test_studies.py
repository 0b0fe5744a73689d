"""The paper's studies are all there, and each of their points can be composed."""

from __future__ import annotations

from pathlib import Path

import pytest
from cse_ifcl import changed
from cse_ifcl.changed import scores

from tests.fixtures.studies import definition, made_small, names, planned

NAMES = names("ifcl")


def test_they_are_all_there() -> None:
    assert len(NAMES) == 11


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("studies")


MADE: set[str] = set()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_its_runs_are_made(name: str, folder: Path) -> None:
    made_small(name, folder, MADE)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_planned(name: str) -> None:
    plan = planned(name)
    assert plan.points
    assert (plan.definition.study.kind == "train") == bool(plan.cells)


def test_second_sentences_are_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = list(changed._installed("starter"))
    assert len(rows) == 1200
    monkeypatch.setattr(changed, "_installed", lambda name: rows[:60])
    point = {"model": "starter", "pairs": "starter"}
    plain = scores(point)
    assert plain["pairs"] == 60
    assert scores({**point, "aug": "fusion"}) == plain  # each is its own translation
    found = definition("ifcl/figure-4a").study.axes[0].values["options"][3]
    synonyms = scores({**point, "aug": "synonym", "options": found})
    assert synonyms["spearman"] != plain["spearman"]
