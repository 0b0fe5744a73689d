"""``cse check-plugin``: it names the promise, the file and what was found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cse_testkit import CommandSuite
from cse_testkit.checking import of_pairs

from plugins.testkit.tests.test_new_plugin import CSE, installed, run, write
from tests.fixtures.command_line import Cse, cse

__all__ = ["cse"]
TEXT = '"""Softmax temperature: similarities are divided by it."""'
NEED = "Requires-Dist: cse-toolkit<0.2,>=0.1"


class TestCheckPlugin(CommandSuite):
    distribution = "cse-testkit"
    command = "check-plugin"


class TestNewPlugin(CommandSuite):
    distribution = "cse-testkit"
    command = "new-plugin"


Checked = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of a loss."""
    return write(tmp_path_factory.mktemp("source") / "cse-every", "every", "loss")


@pytest.fixture(scope="module")
def base(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where it is installed."""
    return installed(source, tmp_path_factory.mktemp("base") / "site")


@pytest.fixture
def site(base: Path, tmp_path: Path) -> Path:
    """Where it is installed, to be changed."""
    return Path(shutil.copytree(base, tmp_path / "site"))


@pytest.fixture
def checked(site: Path, tmp_path: Path) -> Checked:
    """Check the package, with a text in one of its files replaced."""

    def call(file: str = "", old: str = "", new: str = "") -> tuple[int, dict[str, Any]]:
        if file:
            (path,) = site.glob(file)
            was = path.read_text(encoding="utf-8")
            assert old in was
            path.write_text(was.replace(old, new, 1), encoding="utf-8")
        done = run([CSE, "check-plugin", "every", "--no-pairs", "--json"], tmp_path, site)
        assert done.returncode in (0, 1), done.stderr
        return done.returncode, json.loads(done.stdout)

    return call


def test_a_sound_plugin_keeps_every_promise(checked: Checked) -> None:
    code, found = checked()
    assert (code, found["broken"], found["distribution"]) == (0, 0, "cse-every")
    assert {each["part"] for each in found["promises"]} == {"plugin", "loss every", "recipe every"}
    assert set(found["promises"][0]) == {"part", "name", "ok", "detail", "file", "says"}


FAULTS = [
    ("cse_every/loss.py", "if targets.weights is None else targets.weights", "",
     "test_a_positive_of_weight_zero_does_not_count", "cse_every/loss.py:", "read targets"),
    ("cse_every/options.py", f"    {TEXT}\n", "",
     "test_its_options_are_described_and_frozen", "cse_every/options.py:", "temperature"),
    ("cse_every/plugin.py", "paper=PAPER,\n        )", "requires=('sight:x',),\n        )",
     "test_it_is_active", "cse_every/plugin.py", "not in the vocabulary"),
    ("cse_every/plugin.py", "from cse_core.records", "import torch\nfrom cse_core.records",
     "test_its_plugin_module_imports_nothing_heavy", "cse_every/plugin.py", "imports torch"),
    ("cse_every/recipes/every.toml", 'use = "every"', 'use = "every"\nmargin = 7.0',
     "test_it_resolves_for_every_encoder", "recipes/every.toml", "margin"),
    ("*.dist-info/METADATA", NEED, "Requires-Dist: cse-toolkit",
     "metadata_range_of_toolkit", "METADATA", "no upper bound"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "old", "new", "name", "place", "detail"),
    [FAULTS[0], *(pytest.param(*fault, marks=pytest.mark.slow) for fault in FAULTS[1:])],
)
def test_a_fault_is_named_with_its_file(
    file: str, old: str, new: str, name: str, place: str, detail: str, checked: Checked
) -> None:
    code, found = checked(file, old, new)
    assert code == 1
    broken = {each["name"]: each for each in found["promises"] if each["ok"] is False}
    assert name in broken, broken
    assert place in broken[name]["file"]
    assert detail in broken[name]["detail"]
    assert len(broken) <= 3, broken


def test_a_broken_promise_is_printed_with_its_file(site: Path) -> None:
    path = site / "cse_every" / "loss.py"
    text = path.read_text(encoding="utf-8").replace("return LossOutput(", "LossOutput(")
    path.write_text(text, encoding="utf-8")
    done = run([CSE, "check-plugin", "every", "--no-pairs"], site, site)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    place = next(n for n, line in enumerate(lines) if "1 BROKEN" in line)
    assert lines[place].startswith("loss every: ")
    assert "not asked until these are fixed" in lines[place]
    assert lines[place + 1].startswith("  cse_every/loss.py:")
    assert lines[place + 1].endswith(": test_it_returns_one_number")
    assert lines[place + 2].startswith("    promised: An ordinary batch gives")
    assert lines[place + 3] == "    found: returned NoneType, not a LossOutput"


def test_pairs_train_or_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from cse_testkit import checking

    few = list(checking.pairs(among=["cse-dclr"]))[:3]
    monkeypatch.setattr(checking, "pairs", lambda registry, among: few)
    found = list(of_pairs("cse-dclr"))
    assert [each.ok for each in found] == [True] * 3
    assert all(each.detail == "trains" or each.detail.startswith("refused: ") for each in found)

    def fails(*_: object) -> None:
        raise ArithmeticError("loss nan")

    monkeypatch.setattr(checking, "try_pair", fails)
    broken = next(of_pairs("cse-dclr"))
    assert (broken.ok, broken.detail) == (False, "ArithmeticError: loss nan")
    assert "cse_dclr" in broken.file


def test_without_a_name_it_is_that_of_the_folder(
    cse: Cse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = cse("check-plugin")
    assert printed.code == 2
    assert "no distribution is named, and none is here" in printed.err
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "cse-nobody"\n')
    printed = cse("check-plugin")
    assert (printed.code, len(printed.errors)) == (2, 1)
    assert "no plugin of this name is installed (got 'cse-nobody')" in printed.err


def test_metadata_older_than_its_pyproject_is_said(tmp_path: Path) -> None:
    from importlib.metadata import PathDistribution

    from cse_testkit.checking import published

    project = '[project]\nname = "cse-old"\nauthors = [{ name = "A. Author" }]\n'
    (tmp_path / "pyproject.toml").write_text(project, encoding="utf-8")
    info = tmp_path / "cse_old-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.4\nName: cse-old\nVersion: 1.0\n")
    where = {"url": tmp_path.as_uri(), "dir_info": {"editable": True}}
    (info / "direct_url.json").write_text(json.dumps(where), encoding="utf-8")
    found = {each.name: each for each in published(PathDistribution(info))}
    assert "older than this file, which has authors" in found["metadata_author"].detail
    assert "brings no licence" in found["metadata_licence_file"].detail
