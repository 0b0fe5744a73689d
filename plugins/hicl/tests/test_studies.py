"""The paper's studies are all there, and each of their points can be composed."""

from __future__ import annotations

from pathlib import Path

import pytest
from cse_hicl.operations import operations

from tests.fixtures.studies import made_small, names, planned

NAMES = names("hicl")


def test_they_are_all_there() -> None:
    assert len(NAMES) == 21


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


def test_the_base_methods_train_in_the_batches_of_hicl() -> None:
    runs = [cell.run for cell in planned("hicl/table-1").cells]
    assert {run.options["train.batch_size"] for run in runs} == {64}


def test_operations_are_those_of_the_products() -> None:
    found = operations({"model": "starter", "tokens": 128, "length": 32, "repeats": 1})
    layers, hidden, inner = 4, 256, 1024

    def products(tokens: int) -> int:
        return layers * (4 * hidden**2 + 2 * hidden * inner + 2 * tokens * hidden) * 2 * tokens

    assert found["whole: operations"] == products(128)
    assert found["segments: operations"] == 4 * products(32)
    assert found["operations"] == pytest.approx(products(128) / (4 * products(32)))
    assert found["seconds"] > 0


def test_a_text_longer_than_the_encoder_is_refused() -> None:
    with pytest.raises(ValueError, match="takes 512 tokens"):
        operations({"model": "starter", "tokens": 1024, "length": 32})
