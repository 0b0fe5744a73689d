from __future__ import annotations

from pathlib import Path

import pytest
import torch
from cse_bench.kept import Measurement, keep
from cse_bench.machine import expected_place

from tests.fixtures.command_line import cse, sentences, starter_copy
from tests.fixtures.tiny import make_encoder

__all__ = ["cse", "sentences", "starter_copy"]


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    torch.set_num_threads(1)
    return make_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("CSE_CACHE", str(folder))
    return folder


def measured(**changes: object) -> Measurement:
    """Return a measurement of the tiny encoder on this machine's processor."""
    fields = {
        "place": expected_place("cpu", None), "hidden": 32, "layers": 2, "family": "bert",
        "attention": "auto", "date": "2026-01-31", "recipe": "simcse", "parts": "0" * 12,
        "batch_size": 8,
        "passes": 1, "work": 100.0, "rule": "fp32", "seconds": {"fp32": 0.2, "bf16": 0.1},
        "gain": 2.0,
    }  # fmt: skip
    return Measurement.model_validate({**fields, **changes})


def kept(**changes: object) -> Measurement:
    """Keep such a measurement."""
    made = measured(**changes)
    keep(made)
    return made
