"""The paper's studies are all there, and each of their points can be composed."""

from __future__ import annotations

from pathlib import Path

import pytest
from cse_iscse.neighbours import of_point

import cse
from tests.fixtures.studies import made_small, names, planned

NAMES = names("iscse")


def test_they_are_all_there() -> None:
    assert len(NAMES) == 14


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


def test_neighbours_of_a_run_as_a_function(tmp_path: Path) -> None:
    options = {
        "positives.knn-smoothing.size": 64,
        "positives.knn-smoothing.k": 4,
        "train.batch_size": 16,
        "train.max_steps": 5,
        "data.limit": 200,
    }
    cse.train("is-cse", dev="none", out=tmp_path / "run", quiet=True, options=options)
    found = of_point({"run": str(tmp_path / "run"), "sentences": 2, "k": 3, "seed": 42})
    assert [len(each["neighbours"]) for each in found["sentences"]] == [3, 3]
    assert "64 vectors in the buffer" in found["buffer"]
    assert -1 <= found["mean cosine"] <= 1
