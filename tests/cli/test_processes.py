"""``cse train`` in two processes, as torchrun starts it."""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from cse_core.training.checkpoint import Checkpoint
from tests.fixtures.command_line import Cse, refused, started
from tests.fixtures.ranks import two_ranks


def test_two_processes_share_a_folder_and_stop_with_a_whole_checkpoint(
    sentences: Path, tmp_path: Path
) -> None:
    words = (
        "train", "-r", "simcse", "-d", str(sentences), "--dev", "none",
        "--train.batch_size", "8", "--train.device", "cpu", "--train.precision", "fp32",
        "--train.max_steps", "100000", "--set", "train.save_steps=20",
    )  # fmt: skip
    with ExitStack() as stack:
        both = [
            stack.enter_context(started(*words, cwd=tmp_path, env=rank)) for rank in two_ranks()
        ]
        deadline = time.monotonic() + 120
        while not list(tmp_path.glob("runs/*/checkpoints/step-*")):
            assert time.monotonic() < deadline
            assert [each.poll() for each in both] == [None, None]
            time.sleep(0.1)
        for _ in range(2):  # a scheduler signals them, and so does the launcher
            for each in both:
                each.send_signal(signal.SIGTERM)
        said = [each.communicate(timeout=60) for each in both]
    assert [each.returncode for each in both] == [130, 130], said
    (run,) = tmp_path.glob("runs/simcse-*")
    last = said[0][1].splitlines()[-1]
    step = int(last.removeprefix("stopped after step ").split(";")[0])
    assert Checkpoint.read(run / "checkpoints" / f"step-{step}").values["step"] == step
    assert "stopped" not in said[1][1]


def test_processes_that_cannot_meet_say_how_to_start_them(
    cse: Cse, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    words = ("train", "-d", str(sentences), "--train.device", "cpu", "--out", str(tmp_path / "run"))
    refused(cse(*words), "WORLD_SIZE", "MASTER_ADDR", "torchrun")
    assert not (tmp_path / "run").exists()
