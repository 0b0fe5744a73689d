"""What the tests of the command line share."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from cse_cli.main import run
from cse_core.registry.loading import package_path

CSE = str(Path(sys.executable).with_name("cse"))


@dataclass(frozen=True)
class Told:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def errors(self) -> list[str]:
        return self.err.splitlines()


Cse = Callable[..., Told]


@pytest.fixture
def cse(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cse:
    """Run a command in this process, with no STS files in sight."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("CSE_DATA_DIR", "/nowhere")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.delenv("CSE_DISABLE_PLUGINS", raising=False)

    def call(*words: str) -> Told:
        capfd.readouterr()
        code = run(words)
        out, err = capfd.readouterr()
        return Told(code, out, err)

    return call


def call_installed(*words: str, cwd: Path, given: bytes = b"") -> Told:
    """Run the installed command as a user would."""
    done = subprocess.run([CSE, *words], cwd=cwd, input=given, capture_output=True, timeout=300)
    return Told(done.returncode, done.stdout.decode(), done.stderr.decode())


@contextmanager
def started(*words: str, cwd: Path, env: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """The installed command as it runs, to interrupt; it does not outlive the block.

    A shell lets what it starts in the background ignore SIGINT, and children inherit that.
    """
    with subprocess.Popen(
        [CSE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd,
        env={**os.environ, **env}, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as run:  # fmt: skip
        try:
            yield run
        finally:
            run.kill()


def refused(told: Told, *words: Sequence[str] | str) -> None:
    """Check for one line of error with these words, exit code 2 and nothing else."""
    assert told.code == 2, told
    assert told.out == ""
    assert len(told.errors) == 1, told.err
    assert told.err.startswith("error: ")
    for word in words:
        assert word in told.err


@pytest.fixture
def starter_copy(tmp_path: Path) -> Path:
    """A copy of the embedded encoder's folder, to damage."""
    from cse_cli.installed import Installed

    folder = package_path(Installed().registry.encoder("starter").spec.path)
    return Path(shutil.copytree(folder, tmp_path / "encoder"))


@pytest.fixture
def sentences(tmp_path: Path) -> Path:
    """A file of 24 sentences and one blank line."""
    things = ("dog", "boat", "violin", "judge", "garden", "goal", "planet", "train")
    lines = [f"the {thing} is {how}" for thing in things for how in ("old", "near", "green")]
    path = tmp_path / "sentences.txt"
    path.write_text("\n".join([*lines[:5], "", *lines[5:]]) + "\n", encoding="utf-8")
    return path
