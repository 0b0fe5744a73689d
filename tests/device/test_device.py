"""Every part takes a step on a device that is not the CPU, and never waits for it there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.device.cases import CASES, JOINED, named

ROOT = Path(__file__).resolve().parents[2]


def test_parts_compute_there_what_they_compute_here_and_wait_for_nothing() -> None:
    """For no log line, no count, no copy: the device always has the next thing to do."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.device.steps"], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    tried = [name for line in lines for name in line["run"].split(", ")]
    assert sorted(tried) == sorted(map(named, CASES))
    for line in lines:
        assert "error" not in line, line
        if not line["drawn"]:  # dropout draws something else on every device
            assert line["there"] == pytest.approx(line["cpu"], rel=1e-4, abs=1e-5), line
        if line["run"] in JOINED:
            waits = line["waits"]
            assert waits and all(JOINED[line["run"]] in place for place in waits)
        else:
            assert line["waits"] == {}, line
