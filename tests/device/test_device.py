"""Every part takes a step on a device that is not the CPU, and never waits for it there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.device.cases import CASES, JOINED, Case, named

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def lines() -> dict[str, dict[str, Any]]:
    """What each case came to, in one process that knows of the device."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.device.steps"], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return {line["case"]: line for line in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_part_computes_there_what_it_computes_here_and_waits_for_nothing(
    case: Case, lines: Any
) -> None:
    """For no log line, no count, no copy: the device always has the next thing to do."""
    line = lines[named(case)]
    assert "error" not in line, line["error"]
    if not line["drawn"]:  # dropout draws something else on every device
        assert line["there"] == pytest.approx(line["cpu"], rel=1e-4, abs=1e-5)
    if named(case) in JOINED:
        waits = line["waits"]
        assert waits and all("cse_core/engine/row_keys.py" in place for place in waits)
    else:
        assert line["waits"] == {}
