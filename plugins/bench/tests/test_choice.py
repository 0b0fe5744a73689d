"""``auto`` goes by what was measured, and a run says so."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from cse_core.data import Corpus
from cse_core.runtime.device import resolve_precision
from cse_core.runtime.reporter import Reporter
from cse_core.training.run import Prepared
from plugins.bench.tests.conftest import kept
from tests.fixtures.tiny import CPU, composed, registry, sentences


def prepared(encoder: str, folder: Path, *sets: str) -> Prepared:
    composition = composed(encoder, "", "train.precision=auto", *sets, folder=folder, rows=24)
    return Prepared(
        composition, registry(), Reporter(), Corpus.from_columns({"text": sentences(24)})
    )


def recorded(run: Prepared) -> tuple[str, str]:
    table = tomllib.loads(run.record())["run"]
    return table["precision"], table["why"]


@pytest.mark.parametrize(
    ("gain", "name"), [(2.1, "bf16"), (1.1, "bf16"), (1.09, "fp32"), (0.3, "fp32")]
)
def test_a_gain_decides_and_is_recorded(
    encoder: str, tmp_path: Path, cache: Path, gain: float, name: str
) -> None:
    kept(gain=gain)
    run = prepared(encoder, tmp_path)
    assert recorded(run) == (name, f"measured here: bf16 {gain:.2f} times fp32")
    assert (run.precision.dtype is None) == (name == "fp32")


@pytest.mark.parametrize("changes", [{"hidden": 64}, {"layers": 12}, {"gain": None}])
def test_without_a_measurement_the_rule_decides(
    encoder: str, tmp_path: Path, cache: Path, changes: dict[str, int | None]
) -> None:
    kept(**changes)
    plain = resolve_precision("auto", CPU)
    assert recorded(prepared(encoder, tmp_path)) == (plain.name, plain.why)


def test_other_threads_are_another_measurement(encoder: str, tmp_path: Path, cache: Path) -> None:
    kept(gain=1000.0)
    assert "measured" in recorded(prepared(encoder, tmp_path))[1]
    assert "measured" not in recorded(prepared(encoder, tmp_path, "train.threads=1"))[1]


def test_what_was_asked_for_is_taken(encoder: str, tmp_path: Path, cache: Path) -> None:
    kept(gain=1000.0)
    run = prepared(encoder, tmp_path, "train.precision=fp32")
    assert recorded(run) == ("fp32", "it was asked for")
