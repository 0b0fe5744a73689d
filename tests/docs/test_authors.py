"""docs/authors.md: every hook has its section, and every example there is a plugin that works."""

from __future__ import annotations

import inspect
import json
import re
import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cse_testkit import (
    PluginSuite,
    ReporterSuite,
    SuiteSuite,
    failures,
    installed_registry,
    suite_of,
)
from cse_testkit.plugins import installed_plugins

from cse_cli.main import run
from cse_cli.models.saved_model import load
from cse_cli.plugins.manager import load_plugins
from cse_core.records import ComponentSpec
from cse_core.registry.registry import Registry
from cse_core.runtime.loading import load_factory
from cse_core.specs import HOOK_RECORDS, HOOKS
from tests.docs.pages import DOCS, Page, write_files
from tests.fixtures.packages import entry_points, installed

PAGE = Page(DOCS / "authors.md")
SECTIONS = {
    "cse_augmenters": "An augmenter",
    "cse_poolers": "A pooler",
    "cse_positive_miners": "A positive miner",
    "cse_negative_stores": "A negative store",
    "cse_branches": "A branch",
    "cse_adapters": "An adapter",
    "cse_losses": "A loss: the whole package",
    "cse_metrics": "A metric",
    "cse_encoders": "An encoder",
    "cse_datasets": "A data set",
    "cse_suites": "An evaluation suite",
    "cse_reporters": "A reporter",
    "commands": "A command",
}
"""The section of each hook."""
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
SHORT = ("--train.max_steps", "2", "--data", "texts.txt")


class Example:
    """The example of a hook, installed in a folder of its own."""

    def __init__(self, folder: Path, package: str, commands: list[list[str]]) -> None:
        self.folder, self.package, self.commands = folder, package, commands

    def check(self, hook: str) -> Any:
        """Check the plugin's record, run its commands; return the record."""
        name = self.package.replace("_", "-")
        (info,) = (info for info in load_plugins().infos if info.distribution == name)
        assert (info.status, info.reason) == ("active", "")
        assert hook in info.hooks
        record = next(each for each in info.parts if isinstance(each, HOOK_RECORDS[hook]))
        self.run()
        if isinstance(record, ComponentSpec):
            assert failures(suite_of(record.kind, record.name, registry())) == {}
        return record

    def run(self) -> None:
        """Run the section's commands."""
        assert self.commands
        for number, words in enumerate(self.commands):
            if words[0] == "cp":
                shutil.copytree(words[2], words[3])
            if words[0] != "cse":
                continue
            if words[1] == "train":
                words = [*words, *CHEAP, *(() if "--data" in words else SHORT)]
                words = words if "--out" in words else [*words, "--out", f"runs/{number}"]
            assert run(words[1:]) == 0, words

    def trained_with(self, text: str) -> None:
        """Check that the first run of the commands finished, with this in its run.toml."""
        files = (p for p in self.folder.glob("runs/*/run.toml") if p.parent.name != "latest")
        (run_file,) = (p for p in files if (p.parent / "model" / "model.safetensors").is_file())
        assert text in run_file.read_text(encoding="utf-8")


@pytest.fixture
def example(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Example]:
    name = request.node.name
    hook = name.partition("[")[2].rstrip("]") or name.removeprefix("test_hook_")
    blocks = PAGE.blocks(SECTIONS[hook])
    paths = write_files(blocks, tmp_path)
    commands = [line for block in blocks for line in block.commands()]
    for words in commands:
        if words[0] == "touch":
            for name in words[1:]:
                (tmp_path / name).touch()
    folder = tmp_path / "cse-dcl" if (tmp_path / "cse-dcl").exists() else tmp_path
    package = next(path.name for path in sorted(folder.glob("cse_*")))
    (folder / package / "__init__.py").touch()
    name = package.replace("_", "-")
    points = {"cse": {name.removeprefix("cse-"): f"{package}.plugin"}}
    if any(path.endswith("pyproject.toml") for path in paths):
        points = dict(entry_points(folder))  # type: ignore[assignment]
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    (tmp_path / "pairs.tsv").write_text(PAIRS, encoding="utf-8")
    lines = ["\t".join(texts) for texts in zip(TEXTS, TEXTS[1:], TEXTS[9:], strict=False)]
    triplets = "\n".join(["anchor\tpositive\tnegative", *lines]) + "\n"
    (tmp_path / "triplets.test.tsv").write_text(triplets, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with installed({name: folder}, points):
        yield Example(tmp_path, package, commands)
    installed_registry.cache_clear()
    installed_plugins.cache_clear()


def registry() -> Registry:
    """Return the parts of the plugins as they are installed now, the example's too."""
    return Registry.from_plugins(load_plugins().infos)


def test_hook_cse_losses(example: Example) -> None:
    assert ["pip", "install", "-e", "cse-dcl"] in example.commands
    assert ["pytest", "cse-dcl/tests"] in example.commands
    example.check("cse_losses")
    example.trained_with('use = "cse-dcl/decoupled"')
    recipe = registry().find("recipe", "dcl")
    assert recipe.spec.path == "cse_dcl:recipes/dcl.toml"
    tests = runpy.run_path(str(example.folder / "cse-dcl/tests/test_decoupled.py"))
    suites = [tests[name] for name in ("TestPlugin", "TestRecipe", "TestDecoupled")]
    installed_registry.cache_clear()
    installed_plugins.cache_clear()
    assert [failures(suite) for suite in suites] == [{}, {}, {}]


PLAIN = {
    "cse_augmenters": "rate = 0.2",
    "cse_positive_miners": 'name = "neighbours"',
    "cse_negative_stores": "size = 512",
    "cse_branches": "every = 2",
    "cse_adapters": 'name = "biases"',
    "cse_encoders": "max_length",
    "cse_datasets": 'path = ["weather"]',
}
"""Hooks whose example trains, with what its run.toml holds."""


@pytest.mark.parametrize("hook", PLAIN)
def test_hook(hook: str, example: Example) -> None:
    example.check(hook)
    example.trained_with(PLAIN[hook])


def test_hook_cse_poolers(example: Example) -> None:
    example.check("cse_poolers")
    example.trained_with('use = "cse-max-pooling/max"')
    from sentence_transformers import SentenceTransformer

    ours = load("runs/0", registry()).encode(TEXTS[:3])
    theirs = SentenceTransformer("runs/0/model", device="cpu").encode(TEXTS[:3])
    assert abs(ours - theirs).max() < 1e-5


def test_hook_cse_metrics(example: Example) -> None:
    record = example.check("cse_metrics")
    example.trained_with('use = "cse-norms/norms"')
    from cse_evaluation.pairs import read_pairs

    class Named:
        name = "norms"

    metric = load_factory(record.factory)(record.options(), Named())
    encode = load("starter", registry()).encode
    numbers = metric.compute(encode, read_pairs("pairs.tsv"))
    assert numbers["mean"] > 0 and numbers["deviation"] >= 0


def test_hook_cse_suites(example: Example, capsys: pytest.CaptureFixture[str]) -> None:
    example.check("cse_suites")
    shown = capsys.readouterr().out
    assert re.search(r"triplets\.test +│ +\d+\.\d\d", shown)
    assert re.search(r"triplets +│ triplets\.test +│ triplets\.test\.tsv", shown)
    assert (
        failures(
            type(
                "Suite",
                (SuiteSuite,),
                {"suite": "triplets", "folder": example.folder, "registry": registry()},
            )
        )
        == {}
    )
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
    example.check("cse_reporters")
    example.trained_with('report = ["notes:digits=1", "csv"]')
    notes = (example.folder / "runs/0/notes.md").read_text(encoding="utf-8")
    assert notes.startswith("# 0: batches of 9, seed 42\n- step ")
    lines = (example.folder / "runs/0/metrics.jsonl").read_text(encoding="utf-8").splitlines()
    table = (example.folder / "runs/0/metrics.csv").read_text(encoding="utf-8").splitlines()
    assert len(table) == len(lines) + 1 and table[0].startswith("step,round,lr,loss")
    assert (
        failures(
            type("Suite", (ReporterSuite,), {"reporter": "notes:digits=3", "registry": registry()})
        )
        == {}
    )


def test_hook_commands(example: Example, capsys: pytest.CaptureFixture[str]) -> None:
    example.run()
    words = sum(len(text.split()) for text in TEXTS)
    assert capsys.readouterr().out.startswith(f"{words} words\n")
    suite = type("Suite", (PluginSuite,), {"distribution": "cse-count-words"})
    asked = ("it_is_active", "its_records_import_nothing_heavy", "its_commands_show_their_help")
    assert failures(suite, asked) == {}


# -- guards ---------------------------------------------------------------------------------------


def test_every_hook_is_in_the_guide_and_in_the_reference_and_has_a_test() -> None:
    reference = Page(DOCS / "reference.md").section("Hooks")
    for hook, record in HOOK_RECORDS.items():
        assert not inspect.signature(getattr(HOOKS, hook)).parameters
        assert f"`{hook}() -> list[{record.__name__}]`" in reference
        assert f"`{hook}`" in PAGE.section("What do you want to change?")
        assert hook in SECTIONS or hook in ("cse_recipes", "cse_studies")


def test_no_plugin_module_of_the_examples_imports_torch() -> None:
    for block in PAGE.blocks():
        if block.path.endswith("plugin.py"):
            found = re.search(r"^\s*(import|from) (torch|transformers|datasets)", block.text, re.M)
            assert not found
