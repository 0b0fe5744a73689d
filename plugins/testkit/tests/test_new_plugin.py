"""``cse new-plugin``: what it writes is right before its author has written a line."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from cse_testkit.new_plugin import KINDS, MAX_NAME, PARTS, Package, kinds_of

from cse_core.hookspecs import NOUNS
from tests.fixtures.command_line import CSE, Cse

ASKED = {*PARTS, "recipe", "reporter", "source"}
"""Kinds with a suite that ``cse check-plugin`` asks."""


def said(words: Sequence[str | Path], folder: Path, site: Path | None = None) -> str:
    """Run a command, with what is installed in ``site``; it ends well."""
    done = run(words, folder, site)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run(
    words: Sequence[str | Path], folder: Path, site: Path | None = None
) -> subprocess.CompletedProcess[str]:
    paths = [str(site)] if site else []
    paths += [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "HF_HUB_OFFLINE": "1"}
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)


def installed(source: Path, folder: Path) -> Path:
    """Install a package into a folder of its own, without an index; returns the folder."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps"]
    done = run([*pip, "--target", folder, source], source)
    assert done.returncode == 0, done.stderr
    return folder


def in_form(folder: Path) -> None:
    said([sys.executable, "-m", "ruff", "check", "."], folder)
    said([sys.executable, "-m", "ruff", "format", "--check", "."], folder)


PAPER = (
    'Lee, Smith and O\'Neil: An "Ordinary" Title of a Paper on Contrastive Learning of Sentence '
    "Embeddings with a Margin, Findings of the ACL 2024, https://aclanthology.org/" + "x" * 120
)


def write(folder: Path, name: str, *kinds: str) -> Path:
    author = 'Ann O\'Neil "x"'
    return Package.named(name, kinds_of(kinds), author=author, paper=PAPER).write(folder)


def test_names_of_all_lengths_are_in_form(tmp_path: Path) -> None:
    for name in ("x", "a" * MAX_NAME, "3-d", "cse-hard-queue", "loss"):
        folder = write(tmp_path / name, name, *KINDS)
        for path in (folder / "CITATION.cff", *folder.glob(".github/workflows/*.yml")):
            assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)
        assert "Ann O'Neil" in (folder / "CITATION.cff").read_text(encoding="utf-8")
        for path in folder.rglob("*"):
            assert "{{" not in path.name and "example" not in path.name
    in_form(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [*((kind,) for kind in KINDS), tuple(KINDS)], ids="-".join)
def test_its_own_tests_and_promises_pass(
    kinds: tuple[str, ...], cse: Cse, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path / "cse-every"
    printed = cse("new-plugin", "every", "--kind", ",".join(kinds), "--out", str(folder))
    assert printed.code == 0 and f'pip install -e "{folder}"' in printed.out
    assert not [*folder.rglob("__pycache__")]
    in_form(folder)
    said(
        [sys.executable, "-m", "mypy", "--cache-dir", tmp_path_factory.getbasetemp() / "mypy"],
        folder,
    )
    site = installed(folder, tmp_path / "site")
    assert (site / "cse_every" / "py.typed").is_file()
    listed = json.loads(said([CSE, "list-plugins", "--json"], tmp_path, site))
    found = [each for each in listed["plugins"] if each["distribution"] == "cse-every"]
    assert [each["status"] for each in found] == ["active"] * len(found)
    assert len(kinds) == 1 or {*found[0]["parts"], "command"} == {*KINDS}
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    assert " passed" in said(pytest_, folder, site)
    checked = said([CSE, "check-plugin", "every", "--no-pairs", "--json"], tmp_path, site)
    promises = json.loads(checked)["promises"]
    assert {each["name"] for each in promises if each["status"] == "broken"} == set()
    parts = {each["part"] for each in promises if each["status"] == "kept"}
    assert "plugin" in parts and len(parts) > len({*kinds} & ASKED)
    for number, line in enumerate(Package("every", kinds_of(kinds)).tries):
        more = ["--out", f"runs/{number}"] if " train " in line else []
        said([CSE, *shlex.split(line)[1:], *more], folder, site)


def test_every_hook_has_a_kind() -> None:
    # A backend is too large for a template: authors.md points to one of 90 lines.
    assert NOUNS.keys() | {"command"} == KINDS.keys() | {"backend"}


def test_a_mistake_is_one_line_and_nothing_is_written(
    cse: Cse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    for words, line in (
        (("Margin",), "NAME: a name is lower-case words"),
        (("a_b",), "NAME: a name is lower-case words"),
        (("a" * (MAX_NAME + 1),), "characters at most"),
        (("",), "NAME: a name is lower-case words"),
        (("../up",), "NAME: a name is lower-case words"),
        (("core",), "Python has a package cse_core already"),
        (("dclr",), "Python has a package cse_dclr already"),
        (("ema", "--kind", "branch"), "NAME: an installed package has a branch of this name"),
        (("bml",), "NAME: an installed package has a loss of this name (got 'bml')"),
        (("train", "--kind", "command"), "NAME: an installed package has a command of this name"),
        (("push", "--kind", "command"), "NAME: an installed package has a command of this name"),
        (("new", "--kind", "los"), "did you mean loss?"),
        (("new", "--kind", "recipes"), "--kind: no kind of record"),
        (("new", "--kind", ","), "--kind: names no kind"),
        (("new", "--out", "there"), "--out: is there already"),
        (("new", "--out", "file/new"), "--out: cannot be written: File exists"),
        (("new", "--author", "a\nb"), "--author: is not one line"),
    ):
        printed = cse("new-plugin", *words)
        assert printed.code == 2
        assert line in printed.err
        assert len(printed.errors) == 1
        assert {path.name for path in tmp_path.rglob("*")} == {"there", "file"}


def test_a_failure_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Package, "_values", full)
    with pytest.raises(Exception, match="cannot be written: No space left"):
        write(tmp_path / "it", "new", "loss")
    assert [*tmp_path.iterdir()] == []
