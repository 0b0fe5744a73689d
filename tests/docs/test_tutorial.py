"""docs/authors.md: the files of its first section make a plugin, and its commands work there."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cse_testkit import failures, suite_of

from cse_cli.main import run
from cse_cli.plugins.manager import load_plugins
from cse_core.registry.registry import Registry
from tests.docs.pages import DOCS, ROOT, Page, write_files, write_metadata

BLOCKS = Page(DOCS / "authors.md").blocks("A loss: the whole package")
CHEAP = ("--train.precision", "fp32", "--train.max_steps", "2", "--train.batch_size", "8")
TEXTS = [f"Sentence number {number} speaks of {what}." for number in range(8) for what in "abc"]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The tutorial's package as ``pip install -e`` leaves it, without pip."""
    written = write_files(BLOCKS, tmp_path)
    assert {path.split("/")[0] for path in written} == {"cse-dcl"}
    folder = tmp_path / "cse-dcl"
    write_metadata(folder, "cse-dcl", "cse_dcl.plugin")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.chdir(tmp_path)
    for block in BLOCKS:
        for words in block.commands():
            if words[0] == "touch":
                (tmp_path / words[1]).touch()
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    importlib.invalidate_caches()
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "cse_dcl"]:
        del sys.modules[name]


def test_the_folder_is_what_the_page_shows(package: Path) -> None:
    shown = next(block.text for block in BLOCKS if block.text.startswith("cse-dcl/"))
    for path in package.rglob("*"):
        if path.is_file() and ".dist-info" not in str(path) and path.name != "__init__.py":
            assert path.name in shown


def test_its_commands_run(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (info,) = (info for info in load_plugins().infos if info.distribution == "cse-dcl")
    assert (info.status, info.reason) == ("active", "")
    commands = [words for block in BLOCKS for words in block.commands()]
    assert ["pip", "install", "-e", "cse-dcl"] in commands
    assert ["pytest", "cse-dcl/tests"] in commands
    for words in commands:
        if words[0] != "cse":
            continue
        if words[1] == "train":
            words = [*words, "--data", "texts.txt", *CHEAP]
        code = run(words[1:])
        printed = capsys.readouterr()
        assert code == 0, f"{' '.join(words)}\n{printed.out}{printed.err}"
        if words[1] == "list-plugins":
            assert "decoupled" in printed.out
    assert (package.parent / "runs/dcl/model/model.safetensors").is_file()


def test_its_tests_pass(package: Path) -> None:
    paths = os.pathsep.join([str(package), str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "cse-dcl/tests"],
        cwd=package.parent,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout


def test_hook_cse_losses(package: Path) -> None:
    registry = Registry.from_plugins(load_plugins().infos)
    assert failures(suite_of("loss", "decoupled", registry)) == {}


def test_hook_cse_recipes(package: Path) -> None:
    (info,) = (info for info in load_plugins().infos if info.distribution == "cse-dcl")
    assert info.hooks == ("cse_losses", "cse_recipes")
    recipe = Registry.from_plugins(load_plugins().infos).find("recipe", "dcl")
    assert recipe.spec.path == "cse_dcl:recipes/dcl.toml"
