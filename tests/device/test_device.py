"""Every part takes a step on a device that is not the CPU, and never waits for it there."""

import json
from pathlib import Path

import pytest

from tests.device.cases import CASES, JOINED, named
from tests.fixtures.command_line import forked


def write_steps(path: Path, step: int) -> None:
    """Write the steps of the cases, in a process that may import the device that is none."""
    from tests.device.steps import write

    write(path, step)


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_parts_compute_there_what_they_compute_here_and_wait_for_nothing(
    tmp_path: Path, step: int
) -> None:
    """For no log line, no count, no copy: the device always has the next thing to do."""
    assert forked(write_steps, tmp_path / "lines", step) == 0
    lines = [json.loads(line) for line in (tmp_path / "lines").read_text().splitlines()]
    tried = [name for line in lines for name in line["run"].split(", ")]
    assert len(tried) > len(CASES) / 4 and {*tried} <= {*map(named, CASES)}
    assert step > 1 or sorted(tried) == sorted(map(named, CASES))
    for line in lines:
        assert "error" not in line, line
        if not line["drawn"]:  # dropout draws something else on every device
            assert line["there"] == pytest.approx(line["cpu"], rel=1e-4, abs=1e-5), line
        if line["run"] in JOINED:
            waits = line["waits"]
            assert waits and all(JOINED[line["run"]] in place for place in waits)
        else:
            assert line["waits"] == {}, line
