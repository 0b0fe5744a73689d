"""The engine trains with a toy backend and a list of strings, and imports no library of models."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from docs.packages import ROOT
from tests.architecture.weight import code_lines


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    words = [
        sys.executable,
        "-m",
        "tests.engine.acid.journey",
        str(tmp_path_factory.mktemp("acid")),
    ]
    found = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    assert lines[-2] == {"saved": "toy", "pool": "mean", "heads": []}
    assert lines[-1] == {"imported": []}
    return {line["run"]: line for line in lines[:-2]}


def test_steps_rounds_and_exports_need_no_library_of_models_or_tables(
    done: dict[str, dict[str, object]],
) -> None:
    assert set(done) == {"steps", "steps-stopped", "chunks", "rounds", "rounds-stopped"}
    for line in done.values():
        assert len(line["losses"]) >= 4 and all(0 < loss < 10 for loss in line["losses"])  # type: ignore
        assert line["model"]


def test_a_stopped_run_that_is_resumed_is_the_whole_run_bit_for_bit(
    done: dict[str, dict[str, object]],
) -> None:
    for name in ("steps", "rounds"):
        whole, resumed = done[name], done[f"{name}-stopped"]
        assert whole["model"] == resumed["model"]
        assert whole["losses"] == resumed["losses"]


def test_the_toy_is_small() -> None:
    assert len(code_lines(Path(__file__).with_name("toy.py"))) <= 90
