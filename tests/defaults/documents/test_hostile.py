"""200 hostile documents and 100 hostile folders: read or refused in a line, in bounded time."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.packages import ROOT

SIZES = [
    pytest.param(2**14, 5.0, 250, id="16 KiB"),
    pytest.param(2**20, 60.0, 500, id="1 MiB", marks=pytest.mark.slow),
]
"""Letters of a document, seconds that it may take, MiB that the process may have."""


REASONS = re.compile(
    "contains no text|stand more than 2,000 deep|: not [A-Z0-9-]+;|the file is empty"
    "|file is cut short or damaged|no document is in this folder"
)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory as Linux has it")
@pytest.mark.parametrize(("size", "seconds", "memory"), SIZES)
def test_hostile_documents_and_folders(
    tmp_path: Path, size: int, seconds: float, memory: int
) -> None:
    command = [sys.executable, "-m", "tests.defaults.documents.hostile", str(tmp_path), str(size)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert done.returncode == 0, (rows[-1:], done.stderr[-2000:])
    outcomes = {ast.literal_eval(name): ast.literal_eval(said) for name, _, _, said in rows}
    assert len(rows) >= 300
    assert not {name: said for name, said in outcomes.items() if "\n" in said}
    slow = {name: float(took) for name, took, _, _ in rows if float(took) > seconds}
    large = {name: int(peak) for name, _, peak, _ in rows if int(peak) > memory}
    assert (slow, large) == ({}, {})
    refused = {name: said for name, said in outcomes.items() if said.startswith("refused")}
    assert not {name: said for name, said in refused.items() if not REASONS.search(said)}
