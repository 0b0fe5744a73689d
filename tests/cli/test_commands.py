"""Commands that distributions bring: names from metadata, one module imported at most."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cse_testkit import PluginSuite, failures
from cse_testkit.promises import plugins_of

from cse_cli.commands import data
from cse_cli.main import build_app
from cse_cli.plugins.installed import OWN_COMMANDS, Installed
from tests.fixtures.command_line import Cse, loaded, refused
from tests.fixtures.distributions import Distributions

RECORD = """
from cse_core.records import CommandSpec
COUNT = CommandSpec(name="{name}", summary="count words", factory="{package}.count:count")
"""
FUNCTION = '''
import typer
def count(text: str, twice: bool = False) -> None:
    """Count the words of a text."""
    typer.echo(f"{package} {{(1 + twice) * len(text.split())}}")
'''
Bring = Callable[..., Path]


@pytest.fixture
def bring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bring]:
    """Install distributions that bring a command, in a folder of their own."""
    made = Distributions(tmp_path)

    def write(distribution: str, name: str = "count", record: str = RECORD) -> Path:
        package = distribution.replace("-", "_")
        made.modules.append(package)
        folder = tmp_path / package
        folder.mkdir()
        (folder / "__init__.py").touch()
        (folder / "commands.py").write_text(record.format(name=name, package=package))
        (folder / "count.py").write_text(FUNCTION.format(package=package))
        point = f"{name.replace(' ', '.')} = {package}.commands:COUNT"
        made.metadata(distribution, point, version="1.0", group="cse.commands")
        plugins_of.cache_clear()
        return folder

    monkeypatch.syspath_prepend(str(tmp_path))
    yield write
    plugins_of.cache_clear()
    for module in [name for name in sys.modules if name.partition(".")[0] in made.modules]:
        del sys.modules[module]


def test_own_names_are_those_of_the_application(cse: Cse) -> None:
    app = build_app(["--help"], Installed(["all"]))
    named = {each.name for each in app.registered_commands} | {"data"}
    named |= {f"data {each.name}" for each in data.app.registered_commands}
    assert named == set(OWN_COMMANDS)
    assert cse("--version").out.startswith("cse-toolkit ")


def test_help_imports_the_records_of_commands_alone(bring: Bring, tmp_path: Path) -> None:
    bring("cse-words")
    modules = ["cse_words.count", "cse_evaluation.cli", "cse_bench.cli", "cse_iscse.neighbours"]
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from cse_cli.main import run\n"
        "run(['--help']), run(['data', '--help'])\n"
        f"sys.exit([name for name in {modules} if name in sys.modules] or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Count words." in done.stdout and "Measure training" in done.stdout


def test_a_command_alone_and_in_groups(bring: Bring, cse: Cse) -> None:
    for name in ("count", "data count", "words count", "words deep count", "list-recipes"):
        bring(f"cse-{name.replace(' ', '-')}s", name)
    said = cse("count", "a b c", "--twice")
    assert (said.code, said.out) == (0, "cse_counts 6\n")
    for name in ("data count", "words count", "words deep count"):
        package = f"cse_{name.replace(' ', '_')}s"
        assert cse(*name.split(), "a b").out == f"{package} 2\n"
        assert "Count words." in cse(*name.split()[:-1], "--help").out
        help_ = cse(*name.split(), "--help")
        assert "Count the words of a text." in help_.out and "--twice" in help_.out
    assert cse("data", "list").code == 0
    assert "simcse" in cse("list-recipes").out, "a name of the toolkit is not replaced"
    refused(cse("evl"), "no such command 'evl'. Did you mean 'eval'?", "see cse --help")
    refused(cse("data", "cout"), "no such command 'cout'. Did you mean 'count'?")


def test_two_distributions_with_one_command(bring: Bring, cse: Cse) -> None:
    bring("cse-words")
    bring("cse-counts")
    refused(cse("count", "a"), "cse count: cse-counts 1.0 and cse-words 1.0 both provide this",
            "leave one out: --no-plugin cse-words")  # fmt: skip
    assert cse("count", "a", "--no-plugin", "cse-words").out == "cse_counts 1\n"
    assert cse("list-recipes").code == 0 and cse("--help").code == 0


def test_left_out_by_distribution(bring: Bring, cse: Cse, monkeypatch: pytest.MonkeyPatch) -> None:
    bring("cse-words")
    for name in ("cse-words", "count", "cse-words:count", "all"):
        said = cse("--no-plugin", name, "count", "a")
        refused(said, "no such command 'count'", f"left out by --no-plugin {name}")
    assert "count" not in cse("--no-plugin", "count", "--help").out
    assert cse("list-plugins", "--no-plugin", "count").err == ""
    monkeypatch.setenv("CSE_DISABLE_PLUGINS", "cse-words")
    refused(cse("count", "a"), "it is left out by CSE_DISABLE_PLUGINS=cse-words")


def test_commands_that_are_not_there(
    bring: Bring, cse: Cse, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring("cse-missing", "missing", record="import no_such_module\n" + RECORD)
    bring("cse-renamed", "renamed", record=RECORD.replace("{name}", "other"))
    (bring("cse-words") / "count.py").write_text("import no_such_module")
    refused(cse("missing", "a"), "cse missing: cse-missing 1.0 cannot be imported",
            "no_such_module", "update cse-missing")  # fmt: skip
    refused(cse("missing", "--help"), "cannot be imported")
    refused(cse("count", "a"), "cse count: cse_words.count:count cannot be imported",
            "install what has the module no_such_module")  # fmt: skip
    refused(cse("renamed", "a"), "not a CommandSpec of this name")
    assert cse("--help").code == 0 and cse("eval", "--help").code == 0
    monkeypatch.setattr("cse_cli.plugins.installed_commands.find_entry_points", lambda group: ())
    refused(cse("eval"), "no such command 'eval'", "a command of cse-evaluation, not installed",
            ": install cse-evaluation")  # fmt: skip
    refused(cse("bnch"), "did you mean bench? it is a command of cse-bench")


def test_listed_and_completed(bring: Bring, cse: Cse, monkeypatch: pytest.MonkeyPatch) -> None:
    bring("cse-words", "data count")
    bring("cse-counts")
    assert "command: data count" in cse("list-plugins").out
    found = {each["key"]: each for each in json.loads(cse("list-plugins", "--json").out)["plugins"]}
    assert found["cse-words:data.count"]["commands"] == ["data count"]
    assert found["cse-iscse:iscse"]["commands"] == ["iscse neighbours"]
    assert found["cse-words:data.count"]["status"] == "active"
    assert "command data count: cse data count --help" in cse("show-plugin", "cse-words").out
    (shown,) = json.loads(cse("show-plugin", "cse-words", "--json").out)["plugins"]
    assert shown["commands"] == ["data count"]
    monkeypatch.setenv("_CSE_COMPLETE", "complete_zsh")
    for typed, wanted in (("cse cou", "count"), ("cse count --tw", "--twice")):
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", typed)
        assert wanted in cse().out


def test_the_suite_of_a_command(bring: Bring, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that breaks nothing is in docs/authors.md."""
    bring("cse-heavy", "weigh", record="import scipy\n" + RECORD)
    bring("cse-shapeless", "bend", record="COUNT = 'a command'")
    monkeypatch.setenv("PYTHONPATH", sys.path[0])
    for distribution, promise in (
        ("cse-heavy", "its_records_import_nothing_heavy"),
        ("cse-shapeless", "it_is_active"),
    ):
        suite = type("Suite", (PluginSuite,), {"distribution": distribution})
        assert list(failures(suite, (promise,))) == [promise]


BROKEN = """
class Notes:
    def rows(self, name, wanted):
        yield name, {"text": "a b"}
        raise KeyError("oops")

@hookimpl
def cse_sources():
    return [SourceSpec(name="notes", summary="notes", factory="cse_broken_source.plugin:Notes",
                       endings=(".notes",))]
"""


def test_a_source_that_raises_is_named_by_commands_of_other_plugins_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cse: Cse
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    Distributions(tmp_path).add("cse-broken-source", BROKEN)
    file = tmp_path / "a.notes"
    file.touch()
    for words in (
        ("data", "show"), ("encode", "starter"), ("search", "starter", "x", "--data"),
        ("index", "starter", "--out", str(tmp_path / "index")),
        ("train", "--dev", "none", "--dry-run", "--data"),
    ):  # fmt: skip
        said = cse(*words, str(file))
        assert said.code == 1, (words, said.err)
        wanted = "error: cse-broken-source 0.1.0: Notes.rows raised KeyError: 'oops'"
        assert wanted in said.err, words
    for module in [name for name in sys.modules if name.startswith("cse_broken_source")]:
        del sys.modules[module]
    loaded.cache_clear()
