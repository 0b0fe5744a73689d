"""docs/tutorial.md: its files make a plugin, its commands and tests work, and so does its wheel."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest
from hatchling.builders.wheel import WheelBuilder

from cse_cli.main import run
from tests.docs.pages import DOCS, ROOT, Page, write_files, write_metadata

PAGE = Page(DOCS / "tutorial.md")
COMMANDS = [words for block in PAGE.blocks() for words in block.commands()]
CHEAP = ("--train.precision", "fp32", "--train.max_steps", "2", "--train.batch_size", "8")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The page's package, its metadata as ``pip install -e`` leaves them."""
    write_files(PAGE.blocks(), tmp_path)
    folder = tmp_path / "cse-arccse"
    for words in COMMANDS:
        if words[0] == "touch":
            (tmp_path / words[1]).touch()
    monkeypatch.chdir(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "cse_arccse"]:
        del sys.modules[name]


@pytest.fixture
def installed(package: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_metadata(package, "cse-arccse", "cse_arccse.plugin")
    monkeypatch.syspath_prepend(str(package))
    importlib.invalidate_caches()
    return package


def python(*words: str, path: Path) -> str:
    """Run Python with a folder in front of its path; return what it printed."""
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(path), str(ROOT)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_commands_run(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ["pip", "install", "-e", "cse-arccse"] in COMMANDS
    said: dict[str, str] = {}
    for words in (words for words in COMMANDS if words[0] == "cse"):
        cheap = CHEAP if words[1] == "train" and "--dry-run" not in words else ()
        assert run([*words[1:], *cheap]) == 0, capsys.readouterr()
        said[" ".join(words[1:5])] = capsys.readouterr().out
    (shown,) = (block.text for block in PAGE.blocks() if block.kind == "text")
    assert shown in said["train --recipe arccse --dry-run"]
    assert "arc, order" in said["list-plugins"]
    mixed = said["train --recipe mocose --loss"]
    assert "loss.order (cse-arccse 0.1.0)" in mixed and "masked-more: made by aug.more" in mixed
    assert "zhang-etal-2022-contrastive" in said["list-plugins --cite arccse"]
    assert (installed.parent / "runs/arccse/model/model.safetensors").is_file()


@pytest.mark.slow
def test_its_tests_pass(installed: Path) -> None:
    assert ["pytest", "cse-arccse/tests"] in COMMANDS
    said = python(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "cse-arccse/tests", path=installed
    )
    assert int(said.rsplit(" passed", 1)[0].split()[-1]) > 70


def test_its_wheel_is_found_where_it_is_installed(package: Path, tmp_path: Path) -> None:
    assert ["pip", "wheel", "--no-deps", "--wheel-dir", "dist", "cse-arccse"] in COMMANDS
    (wheel,) = WheelBuilder(str(package)).build(directory=str(tmp_path / "dist"))
    assert ["pip", "install", f"dist/{Path(wheel).name}"] in COMMANDS
    place = tmp_path / "place"
    with ZipFile(wheel) as archive:
        archive.extractall(place)
    assert (place / "cse_arccse/recipes/arccse.toml").is_file()
    code = "import sys; from cse_cli.main import run; sys.exit(run(sys.argv[1:]))"
    assert "cse-arccse" in python("-c", code, "list-plugins", path=place)
