"""Every part takes a step on a device that is not the CPU, and never waits for it there."""

import json
from pathlib import Path

import pytest

from tests.device.cases import CASES, JOINED, named
from tests.fixtures.command_line import forked


def write_steps(path: Path) -> None:
    """Write the steps of every case, in a process that may import the device that is none."""
    from tests.device.steps import write

    write(path)


def test_parts_compute_there_what_they_compute_here_and_wait_for_nothing(tmp_path: Path) -> None:
    """For no log line, no count, no copy: the device always has the next thing to do."""
    assert forked(write_steps, tmp_path / "lines") == 0
    lines = [json.loads(line) for line in (tmp_path / "lines").read_text().splitlines()]
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
