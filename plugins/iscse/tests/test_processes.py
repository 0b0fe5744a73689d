"""Two processes hold the same buffers and clusters, in the same order, as one process does."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_testkit import shared_encoder

SCRIPT = Path(__file__).with_name("steps_of_buffers.py")


def alone() -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location("steps_of_buffers", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, Any] = module.run(shared_encoder())
    return found


def in_two(folder: Path) -> list[dict[str, Any]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {
        **os.environ,
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, str(SCRIPT), str(folder), str(shared_encoder())]
    running = [
        subprocess.Popen(
            command, env={**env, "RANK": str(rank), "LOCAL_RANK": str(rank)}, stderr=subprocess.PIPE
        )
        for rank in range(2)
    ]
    for process in running:
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors.decode()[-2000:]
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.slow
def test_two_processes_hold_the_same_buffers_and_clusters(tmp_path: Path) -> None:
    one = alone()
    both = in_two(tmp_path)
    assert both[0] == both[1]
    for name, wanted in one.items():
        if name.endswith(".row"):
            assert both[0][name] == wanted, name
        else:
            found, expected = torch.tensor(both[0][name]), torch.tensor(wanted)
            assert torch.allclose(found, expected, rtol=1e-4, atol=1e-3), name
    assert one["losses"][0] == pytest.approx(both[0]["losses"][0], rel=1e-5)
