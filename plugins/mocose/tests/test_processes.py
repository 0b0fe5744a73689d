"""Two processes hold one queue: the same keys, in the same order, as one process does."""

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
from cse_testkit import shared_encoder

SCRIPT = Path(__file__).with_name("steps_of_a_queue.py")


def alone(update: str) -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location("steps_of_a_queue", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, Any] = module.run(shared_encoder(), update)
    return found


def in_two(update: str, folder: Path) -> list[dict[str, Any]]:
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
    command = [sys.executable, str(SCRIPT), str(folder), str(shared_encoder()), update]
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


@pytest.mark.parametrize("update", ["normal", pytest.param("latest", marks=pytest.mark.slow)])
def test_two_processes_hold_one_queue(update: str, tmp_path: Path) -> None:
    one = alone(update)
    for other in in_two(update, tmp_path):
        assert other["losses"] == pytest.approx(one["losses"], rel=1e-4)
        assert (other["row"], other["age"]) == (one["row"], one["age"])
        assert other.get("texts") == one.get("texts")
        for mine, theirs in zip(other["vectors"], one["vectors"], strict=True):
            assert mine == pytest.approx(theirs, abs=1e-3)
