"""docs/authors.md: every hook has its section, and every example there is a plugin that works."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cse_testkit import CommandSuite, ReporterSuite, SuiteSuite, failures, suite_of

from cse_cli.main import run
from cse_cli.plugins.manager import load_plugins
from cse_core.records import ComponentSpec
from cse_core.registry.plugin_info import PluginInfo
from cse_core.registry.registry import Registry
from cse_core.specs import HOOK_RECORDS, HOOKS
from tests.docs.pages import DOCS, ROOT, Page, write_files, write_metadata

PAGE = Page(DOCS / "authors.md")
SECTIONS = {
    "cse_augmenters": "An augmenter",
    "cse_poolers": "A pooler",
    "cse_positive_miners": "A positive miner",
    "cse_negative_stores": "A negative store",
    "cse_branches": "A branch",
    "cse_adapters": "An adapter",
    "cse_metrics": "A metric",
    "cse_encoders": "An encoder",
    "cse_datasets": "A data set",
    "cse_suites": "An evaluation suite",
    "cse_reporters": "A reporter",
    "commands": "A command",
}
"""The section of each hook; tests/docs/test_tutorial.py has that of losses and recipes."""
TEXTS = [
    f"The {one} {two} near the {place}."
    for one in ("old farmer", "young painter", "tired driver")
    for two in ("waits for the bus", "reads a long letter", "sings an old song")
    for place in ("harbour", "library", "market")
]
PAIRS = "sentence1\tsentence2\tscore\n" + "".join(
    f"{first}\t{second}\t{score}\n"
    for first, second, score in zip(TEXTS, TEXTS[1:], [5, 0, 3, 1] * 9, strict=False)
)
CHEAP = ("--train.precision", "fp32", "--train.batch_size", "9")


@dataclass
class Example:
    """The example of a hook, installed in a folder of its own."""

    folder: Path
    package: str
    commands: list[list[str]]

    @property
    def info(self) -> PluginInfo:
        """Return what became of the plugin."""
        name = self.package.removeprefix("cse_").replace("_", "-")
        (found,) = (i for i in load_plugins().infos if i.name == name)
        return found

    def run(self) -> None:
        """Run the section's commands."""
        for number, words in enumerate(self.commands):
            if words[0] == "cp":
                shutil.copytree(words[2], words[3])
                continue
            assert words[0] == "cse", words
            if words[1] == "train":
                words = [*words, *CHEAP]
            if words[1] == "train" and "--out" not in words:
                words = [*words, "--out", f"runs/{number}"]
            assert run(words[1:]) == 0, words


@pytest.fixture
def example(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Example]:
    hook = request.node.name.removeprefix("test_hook_")
    blocks = PAGE.blocks(SECTIONS[hook])
    paths = write_files(blocks, tmp_path)
    (package,) = {path.split("/")[0] for path in paths if "/" in path}
    (tmp_path / package / "__init__.py").touch()
    points = ""
    if "pyproject.toml" in paths:
        project = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]
        for group, found in project["entry-points"].items():
            points += f"[{group}]\n" + "".join(f"{n} = {value}\n" for n, value in found.items())
    write_metadata(tmp_path, package.replace("_", "-"), f"{package}.plugin", points=points)
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    (tmp_path / "pairs.tsv").write_text(PAIRS, encoding="utf-8")
    lines = ["\t".join(texts) for texts in zip(TEXTS, TEXTS[1:], TEXTS[9:], strict=False)]
    triplets = "\n".join(["anchor\tpositive\tnegative", *lines]) + "\n"
    (tmp_path / "triplets.test.tsv").write_text(triplets, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CSE_DISABLE_PLUGINS", raising=False)
    importlib.invalidate_caches()
    yield Example(tmp_path, package, [line for block in blocks for line in block.commands()])
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]


def check(example: Example, hook: str) -> Any:
    """Check the plugin's record, run its commands; return the record."""
    info = example.info
    assert (info.status, info.reason) == ("active", "")
    assert info.hooks == (hook,)
    (record,) = info.parts
    assert isinstance(record, HOOK_RECORDS[hook])
    assert example.commands
    example.run()
    if isinstance(record, ComponentSpec):
        registry = Registry.from_plugins(load_plugins().infos)
        assert failures(suite_of(record.kind, record.name, registry)) == {}
    return record


def current_registry() -> Registry:
    """Return the parts of the plugins as they are installed now, the example's too."""
    return Registry.from_plugins(load_plugins().infos)


def trained_with(example: Example, text: str) -> None:
    """Check that the first run of the commands finished, with this in its resolved recipe."""
    (run_file,) = (
        path for path in example.folder.glob("runs/*/run.toml") if path.parent.name != "latest"
    )
    assert text in run_file.read_text(encoding="utf-8")
    assert (run_file.parent / "model" / "model.safetensors").is_file()


def test_hook_cse_augmenters(example: Example) -> None:
    check(example, "cse_augmenters")
    trained_with(example, "rate = 0.2")


def test_hook_cse_poolers(example: Example) -> None:
    check(example, "cse_poolers")
    trained_with(example, f'use = "{example.info.distribution}/max"')
    from sentence_transformers import SentenceTransformer

    from cse_cli.models.saved_model import load

    registry = Registry.from_plugins(load_plugins().infos)
    ours = load("runs/0", registry).encode(TEXTS[:3])
    theirs = SentenceTransformer("runs/0/model", device="cpu").encode(TEXTS[:3])
    assert abs(ours - theirs).max() < 1e-5


def test_hook_cse_positive_miners(example: Example) -> None:
    check(example, "cse_positive_miners")
    trained_with(example, 'name = "neighbours"')


def test_hook_cse_negative_stores(example: Example) -> None:
    check(example, "cse_negative_stores")
    trained_with(example, "size = 512")
    assert "recent" in (example.folder / "runs/0/run.toml").read_text(encoding="utf-8")


def test_hook_cse_branches(example: Example) -> None:
    check(example, "cse_branches")
    trained_with(example, "every = 2")


def test_hook_cse_adapters(example: Example) -> None:
    check(example, "cse_adapters")
    trained_with(example, 'name = "biases"')


def test_hook_cse_metrics(example: Example) -> None:
    record = check(example, "cse_metrics")
    trained_with(example, f'use = "{example.info.distribution}/norms"')
    from cse_evaluation.pairs import read_pairs

    from cse_cli.models.saved_model import load
    from cse_core.runtime.loading import load_factory

    registry = Registry.from_plugins(load_plugins().infos)

    class Named:
        name = "norms"

    metric = load_factory(record.factory)(record.options(), Named())
    encode = load("starter", registry).encode
    numbers = metric.compute(encode, read_pairs("pairs.tsv"))
    assert numbers["mean"] > 0 and numbers["deviation"] >= 0


def test_hook_cse_encoders(example: Example, capsys: pytest.CaptureFixture[str]) -> None:
    check(example, "cse_encoders")
    trained_with(example, "max_length")


def test_hook_cse_datasets(example: Example) -> None:
    check(example, "cse_datasets")
    trained_with(example, 'path = ["weather"]')


def test_hook_cse_suites(example: Example, capsys: pytest.CaptureFixture[str]) -> None:
    check(example, "cse_suites")
    shown = capsys.readouterr().out
    assert re.search(r"triplets\.test +│ +\d+\.\d\d", shown)
    assert re.search(r"triplets +│ triplets\.test +│ triplets\.test\.tsv", shown)
    trained_with(example, 'triplets.test.tsv"]')
    lines = (example.folder / "runs/2/metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert 0 < json.loads(lines[-1])["triplets.test.accuracy"] < 100
    values = {"suite": "triplets", "folder": example.folder, "registry": current_registry()}
    assert failures(type("Suite", (SuiteSuite,), values)) == {}
    words = ["eval", "starter", "--suite", "triplets", "--data-dir", ".", "--pairs", "pairs.tsv"]
    assert run([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["missing"] == [] and set(found["results"]) == {"pairs", "triplets.test"}
    assert found["results"]["triplets.test"]["triplets"] == len(TEXTS) - 9
    assert 0 < found["results"]["triplets.test"]["accuracy"] < 100
    assert run(["eval", "starter", "--suite", "triplet"]) == 2
    assert "did you mean triplets?" in capsys.readouterr().err
    assert run(["eval", "starter", "--suite", "triplets", "--data-dir", "cse_triplets"]) == 2
    assert "no file of the suite triplets is here" in capsys.readouterr().err


def test_hook_cse_reporters(example: Example) -> None:
    check(example, "cse_reporters")
    trained_with(example, 'report = ["notes:digits=1", "csv"]')
    notes = (example.folder / "runs/0/notes.md").read_text(encoding="utf-8")
    assert notes.startswith("# 0: batches of 9, seed 42\n- step ")
    lines = (example.folder / "runs/0/metrics.jsonl").read_text(encoding="utf-8").splitlines()
    table = (example.folder / "runs/0/metrics.csv").read_text(encoding="utf-8").splitlines()
    assert len(table) == len(lines) + 1 and table[0].startswith("step,round,lr,loss")
    values = {"reporter": "notes:digits=3", "registry": current_registry()}
    assert failures(type("Suite", (ReporterSuite,), values)) == {}


def test_hook_commands(example: Example, capsys: pytest.CaptureFixture[str]) -> None:
    example.run()
    words = sum(len(text.split()) for text in TEXTS)
    assert capsys.readouterr().out.startswith(f"{words} words\n")
    values = {"distribution": "cse-count-words", "command": "count-words"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(example.folder))
        assert failures(type("Suite", (CommandSuite,), values)) == {}


# -- guards ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook", HOOK_RECORDS)
def test_every_hook_is_in_the_guide_and_in_the_reference_with_its_exact_form(hook: str) -> None:
    assert not inspect.signature(getattr(HOOKS, hook)).parameters
    reference = Page(DOCS / "reference.md").section("Hooks")
    assert f"`{hook}() -> list[{HOOK_RECORDS[hook].__name__}]`" in reference
    assert f"| `{hook}` |" in PAGE.section("What do you want to change?")
    assert f"def {hook}() -> list[" in PAGE.text


@pytest.mark.parametrize("hook", HOOK_RECORDS)
def test_every_hook_has_a_test(hook: str) -> None:
    files = [*ROOT.glob("tests/**/*.py"), *ROOT.glob("plugins/*/tests/**/*.py")]
    wanted = re.compile(rf"^def test_hook_{hook}\(", re.M)
    assert any(wanted.search(path.read_text(encoding="utf-8")) for path in files)


def test_no_plugin_module_of_the_examples_imports_torch() -> None:
    for block in PAGE.blocks():
        if block.path.endswith("plugin.py"):
            assert not re.search(
                r"^\s*(import|from) (torch|transformers|datasets)", block.text, re.M
            )
