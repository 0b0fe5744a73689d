"""``cse check-plugin``: it names the promise, the file and what was found."""

import importlib
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZipFile

import pytest
from cse_testkit import PluginSuite, checking, failures, plugins
from cse_testkit.check_plugin import kept_line
from cse_testkit.promises import plugins_of
from hatchling.builders.wheel import WheelBuilder

from cse_core.registry.discovery import DISABLE_VARIABLE
from plugins.testkit.tests.test_new_plugin import write
from tests.fixtures.command_line import Cse

TEXT = '"""Softmax temperature: similarities are divided by it."""'
NEED = "Requires-Dist: cse-toolkit<0.2,>=0.1"


class TestPlugin(PluginSuite):
    distribution = "cse-testkit"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of a loss as its wheel holds it."""
    top = tmp_path_factory.mktemp("base")
    source = write(top / "cse-every", "every", "loss")
    (wheel,) = WheelBuilder(str(source)).build(directory=str(top))
    with ZipFile(wheel) as archive:
        archive.extractall(top / "site")
    return top / "site"


@pytest.fixture
def site(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where it is installed, to be changed."""
    folder = Path(shutil.copytree(base, tmp_path / "site"))
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    _forget()
    yield folder
    _forget()


def _forget() -> None:
    """Forget what is installed, and the modules of the package."""
    importlib.invalidate_caches()
    plugins_of.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "cse_every"]:
        del sys.modules[name]


RANK = "int(torch.distributed.is_initialized() and torch.distributed.get_rank())"
FAULTS = [
    ("cse_every/loss_options.py", f"    {TEXT}\n", "",
     "its_options_are_described", "cse_every/loss_options.py:", "temperature"),
    ("cse_every/plugin.py", "paper=PAPER,\n        )", "requires=('views:x',),\n        )",
     "it_is_active", "cse_every/plugin.py", "not a known capability"),
    ("cse_every/plugin.py", "from cse_core.records", "import torch\nfrom cse_core.records",
     "its_records_import_nothing_heavy", "cse_every/plugin.py", "imports torch"),
    ("cse_every/recipes/every.toml", 'use = "every"', 'use = "every"\nmargin = 7.0',
     "it_resolves_for_every_encoder", "recipes/every.toml", "margin"),
    ("*.dist-info/METADATA", NEED, "Requires-Dist: cse-toolkit",
     "it_says_which_toolkit_it_needs", "cse_every/plugin.py", "no upper bound"),
    ("cse_every/plugin.py", 'name="every"', 'name="Every Loss"',
     "it_is_active", "cse_every/plugin.py", "broken"),
    ("cse_every/plugin.py", "    return [", "    raise ValueError('no')\n    return [",
     "it_is_active", "cse_every/plugin.py", "ValueError"),
    ("cse_every/plugin.py", 'factory="cse_every.loss:', 'factory="cse_every.nowhere:',
     "its_factories_are_there", "cse_every/plugin.py", "cannot be imported"),
    ("cse_every/plugin.py", "_options:Every", "_options:Other",
     "its_factories_are_there", "cse_every/plugin.py", "has no OtherOptions"),
    ("cse_every/plugin.py", "import hookimpl", "import hookimpl\nfrom pydantic import Field",
     "its_records_import_nothing_heavy", "cse_every/plugin.py", "imports pydantic"),
    ("cse_every/loss.py", "import torch\n", "import matplotlib\nimport torch\n",
     "its_dependencies_are_declared", "cse_every/plugin.py", "imports matplotlib"),
    ("cse_every/plugin.py", "import hookimpl", "import hookimpl\nprint('hello')",
     "its_records_import_nothing_heavy", "cse_every/plugin.py", "print 'hello"),
    ("cse_every/loss.py", "class Every", "class Other",
     "its_factories_are_there", "cse_every/plugin.py", "has no Every"),
    ("cse_every/loss.py", "LossOutput(value", "LossOutput(value * 2 ** self.rank",
     "two_processes_train_as_one", "cse_every/loss.py:", "in process 1 the loss of step 1 is not"),
    ("cse_every/loss.py", "LossOutput(value", "LossOutput([value][self.rank]",
     "two_processes_train_as_one", "cse_every/loss.py:", "a step raised IndexError"),
]  # fmt: skip


def test_a_sound_plugin_keeps_every_promise(site: Path, cse: Cse) -> None:
    printed = cse("check-plugin", "every", "--no-pairs", "--json")
    found = json.loads(printed.out)
    assert (printed.code, found["broken"], found["distribution"]) == (0, 0, "cse-every"), found
    parts = {"plugin", "loss every", "recipe every", "two processes"}
    assert {each["part"] for each in found["promises"]} == parts
    assert not printed.err
    assert set(found["promises"][0]) == {"part", "name", "status", "detail", "file", "says"}


@pytest.mark.parametrize(
    "faults", [FAULTS[::3], pytest.param(FAULTS, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_every_fault_is_named_with_its_file(
    site: Path, monkeypatch: pytest.MonkeyPatch, faults: list[tuple[str, ...]]
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a file changes twice in a second
    for file, old, new, name, place, detail in faults:
        (path,) = site.glob(file)
        was = path.read_text(encoding="utf-8")
        assert old in was
        path.write_text(was.replace(old, new, 1).replace("self.rank", RANK), encoding="utf-8")
        _forget()
        infos = [each for each in plugins_of().manager.infos if each.distribution == "cse-every"]
        with monkeypatch.context() as patch:  # what takes a process is asked of its own faults
            if name == "two_processes_train_as_one":
                patch.setattr(checking, "of_record", lambda *_: ())
            if name != "its_records_import_nothing_heavy":
                patch.setattr(plugins, "heavy_imports", lambda _: "")
            asked = checking.check("cse-every", infos, with_pairs=False)
            broken = next(each for each in asked if each.status == "broken")
        assert (broken.name, place in broken.file) == (name, True), broken
        assert detail in broken.detail
        path.write_text(was, encoding="utf-8")


def test_a_package_without_a_mark_of_types_and_one_that_is_not_there(site: Path) -> None:
    (site / "cse_every" / "py.typed").unlink()
    for name, promise, text in (
        ("cse-every", "its_packages_are_typed", "cse_every has no py.typed"),
        ("cse-nobody", "it_is_active", "brings no entry point"),
    ):
        suite = type("Suite", (PluginSuite,), {"distribution": name})
        assert text in failures(suite, [promise])[promise]


def test_a_declaration_that_matches_nothing_is_an_error(site: Path) -> None:
    suite = type("Suite", (PluginSuite,), {"distribution": "cse-every"})
    promise = "its_declarations_match_its_parts"
    for table, said in (
        ("unchecked]\n'loss.every' = ['gradient', 'margin']", ""),
        ("options.loss.every]\nmargin = 0.3", ""),
        ("columns]\ntopic = 'text'", ""),
        ("uncheked]", "tool.cse: matches nothing (got 'uncheked'); did you mean unchecked?"),
        ("unchecked]\n'loss.evry' = []", "tool.cse.unchecked: matches nothing (got 'loss.evry')"),
        ("unchecked]\n'loss.every' = ['magin']", "tool.cse.unchecked.loss.every: matches nothing"),
        ("unchecked]\n'loss.every' = 'margin'", "tool.cse.unchecked.loss.every: is not a list"),
        ("options.los.every]", "tool.cse.options: matches nothing (got 'los'); did you mean loss?"),
        ("options.loss.evry]", "options.loss: matches nothing (got 'evry'); did you mean every?"),
        ("options.loss.every]\nmagin = 1", "(got 'magin'); did you mean margin?"),
        ("options.loss]\nevery = 1", "tool.cse.options.loss.every: is not a table"),
    ):
        text = f"[project]\nname = 'cse-every'\n[tool.cse.{table}\n"
        (site / "pyproject.toml").write_text(text, encoding="utf-8")
        found = failures(suite, [promise])
        assert found.keys() == ({promise} if said else set()) and said in found.get(promise, "")
    infos = [each for each in plugins_of().manager.infos if each.distribution == "cse-every"]
    asked = checking.check("cse-every", infos, with_pairs=False)
    assert next(each for each in asked if each.status == "broken").file == "pyproject.toml"


def test_a_broken_promise_is_printed_with_its_file(site: Path, cse: Cse) -> None:
    path = site / "cse_every" / "loss.py"
    text = path.read_text(encoding="utf-8").replace("return LossOutput(", "LossOutput(")
    path.write_text(text, encoding="utf-8")
    printed = cse("check-plugin", "every", "--no-pairs")
    assert printed.code == 1
    lines = printed.out.splitlines()
    place = next(n for n, line in enumerate(lines) if line.startswith("loss every"))
    assert lines[place].startswith("loss every: 4 promises kept, 1 broken, ")
    assert lines[place].endswith(" not asked until it is fixed")
    assert lines[place + 1].startswith("BROKEN loss every: it_runs_and_pure_methods_change_nothing")
    assert "__call__ promised LossOutput, returned None: fix cse_every/" in lines[place + 1]


def test_a_plugin_and_a_command_may_have_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """As new-plugin writes them: neither hides the other."""
    plugin = next(info for info in plugins_of().manager.infos if info.distribution == "cse-dclr")
    command = replace(plugin, module="cse_dclr.cse_commands:COMMAND", parts=())
    known = SimpleNamespace(
        manager=SimpleNamespace(infos=[plugin, command]),
        commands=SimpleNamespace(all=[SimpleNamespace(info=command)]),
    )
    monkeypatch.setattr(plugins, "plugins_of", lambda: known)
    suite = type("Suite", (PluginSuite,), {"distribution": "cse-dclr"})
    assert suite().infos() == [plugin]


def test_pairs_train_or_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    every = checking.pairs()
    few = [pair for pair in every if any(each.distribution == "cse-dclr" for each in pair)][:3]
    monkeypatch.setattr(checking, "pairs", lambda *_: few)
    found = list(checking.of_pairs("cse-dclr"))
    assert [each.status for each in found] == ["kept"] * 3
    assert all(not each.detail or each.detail.startswith("refused: ") for each in found)
    cells = [replace(found[0], detail=detail) for detail in ("", "refused: no", "refused: no")]
    assert kept_line(cells) == "1 promises kept, 2 pairs refused with a reason"

    def fails(parts: Sequence[object], least: int) -> None:
        if len(parts) >= least:
            raise ArithmeticError("loss nan")

    for least, status, detail in (
        (2, "broken", "ArithmeticError: loss nan"),
        (1, "not asked", f"{few[0][0].spec.kind}.{few[0][0].name} of {few[0][0].label} fails by"),
    ):
        monkeypatch.setattr(checking, "train_together", partial(fails, least=least))
        checking.fails_alone.cache_clear()
        found = [next(checking.of_pairs("cse-dclr"))]
        assert found[0].status == status and found[0].detail.startswith(detail)
        assert "cse_dclr" in found[0].file
    checking.fails_alone.cache_clear()


def test_pairs_leave_out_what_no_plugin_names(cse: Cse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DISABLE_VARIABLE, "")
    monkeypatch.setattr(checking, "check", lambda *_, **__: ())
    for words, stay in ((), True), (("--no-plugin", "mocose"), False):
        plugins_of.cache_clear()
        assert cse("check-plugin", "cse-dclr", *words).code == 0
        seen = {part.distribution for pair in checking.pairs() for part in pair}
        assert "cse-dclr" in seen and ("cse-mocose" in seen) is stay
    plugins_of.cache_clear()


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
