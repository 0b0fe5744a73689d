"""The suites of what stands beside the parts find what is broken: suites, reporters."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_testkit import ReporterSuite, SuiteSuite, failures

from cse_core.evaluation.suites import DevSet, Suite, SuiteFiles, SuiteScore
from cse_core.records import ReporterSpec, SuiteSpec
from cse_core.registry.registry import Registered, Registry
from cse_core.runtime.reporter import Reporter


class Sound(Suite):
    def locate(self, folder: Path) -> SuiteFiles:
        path = folder / "words.txt"
        return SuiteFiles({"words": path if path.is_file() else None})

    def read(self, files: Mapping[str, Path]) -> Any:
        return files["words"].read_text().split()

    def score(self, encode: Any, read: Any, progress: Any) -> Sequence[SuiteScore]:
        return [self.made(float(encode(read).std()))]

    def made(self, value: float) -> SuiteScore:
        return SuiteScore(name="words", scores={"spread": value}, split="all", setting="raw")


class FindsAnywhere(Sound):
    def locate(self, folder: Path) -> SuiteFiles:
        return SuiteFiles({"words": folder / "words.txt"})


class Infinite(Sound):
    def made(self, value: float) -> SuiteScore:
        return super().made(float("inf"))


class Twice(Sound):
    def score(self, encode: Any, read: Any, progress: Any) -> Sequence[SuiteScore]:
        return [*super().score(encode, read, progress), *super().score(encode, read, progress)]


class Unjson(Sound):
    def made(self, value: float) -> SuiteScore:
        facts = {"folder": Path()}
        return SuiteScore(name="w", scores={"a": value}, split="", setting="raw", facts=facts)


class Random(Sound):
    def made(self, value: float) -> SuiteScore:
        return super().made(random.random())


class Spread(DevSet):
    def score(self, encode: Any) -> dict[str, float]:
        return {"spread": float(encode(["a", "b"]).std())}


class Dev(Sound):
    def read_dev(self, path: Any) -> DevSet | None:
        return self.of(path.stem) if path.suffix == ".txt" else None

    def of(self, name: str) -> DevSet:
        return Spread(name, ("spread",), 2)


class DevOfPairs(Dev):
    def read_dev(self, path: Any) -> DevSet | None:
        return self.of(path.stem)


class DevOfNothing(Dev):
    def read_dev(self, path: Any) -> DevSet | None:
        return None


class DevWithoutItsChoice(Dev):
    def of(self, name: str) -> DevSet:
        return Spread(name, ("spread", "recall"), 2)


class DevUnsaid(Dev):
    pass


class Silent(Reporter):
    def __init__(self, options: Any) -> None:
        self.folder: Path | None = None


class Raises(Silent):
    def line(self, line: Mapping[str, float]) -> None:
        line["dev.spearman"]


class NeedsANewFolder(Silent):
    def start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        (folder / "mine").mkdir(exist_ok=(folder / "metrics.jsonl").is_file() is False)


class Meddles(Silent):
    def line(self, line: Any) -> None:
        line["seen"] = 1.0


class Draws(Silent):
    def step(self, step: int) -> None:
        torch.rand(1)


SUITES = (Sound, FindsAnywhere, Infinite, Twice, Unjson, Random, Silent, DevUnsaid)
DEVS = (Dev, DevOfPairs, DevOfNothing, DevWithoutItsChoice)
REPORTERS = (Silent, Raises, NeedsANewFolder, Meddles, Draws, Sound)


def registry() -> Registry:
    records: list[Any] = []
    for spec, classes in ((SuiteSpec, SUITES), (ReporterSpec, REPORTERS)):
        for each in classes:
            factory = f"{__name__}:{each.__name__}"
            records.append(spec(name=each.__name__.lower(), summary="broken", factory=factory))
    for each in DEVS:
        factory, name = f"{__name__}:{each.__name__}", each.__name__.lower()
        records.append(SuiteSpec(name=name, summary="broken", factory=factory, dev=True))
    return Registry(Registered(each, "cse-x", "1", "cse-x:x") for each in records)


@pytest.mark.parametrize(
    ("suite", "test", "text"),
    [
        (FindsAnywhere, "test_it_finds_nothing_where_nothing_is", "in an empty folder"),
        (Infinite, "test_its_scores_are_finite_numbers", "spread of words is inf"),
        (Twice, "test_its_scores_are_finite_numbers", "two sets have one name: words, words"),
        (Unjson, "test_its_scores_are_json", "w is not valid JSON"),
        (Random, "test_it_scores_the_same_twice", "is another"),
        (Silent, "test_it_finds_its_files", "missing 1 required positional argument"),
        (DevUnsaid, "test_it_reads_dev_sets_as_its_record_says", "read_dev is its own: dev=True"),
        (DevOfPairs, "test_it_reads_dev_sets_as_its_record_says", "takes a file of graded pairs"),
        (DevOfNothing, "test_it_reads_dev_sets_as_its_record_says", "read_dev returns None"),
        (DevWithoutItsChoice, "test_its_dev_sets_are_scored", "may choose by recall"),
    ],
)
def test_a_broken_suite_is_found(suite: type, test: str, text: str, tmp_path: Path) -> None:
    assert text in found(tmp_path, suite)[test]


@pytest.mark.parametrize("suite", [Sound, Dev])
def test_a_sound_suite_passes(suite: type, tmp_path: Path) -> None:
    assert found(tmp_path, suite) == {}


def found(folder: Path, suite: type) -> dict[str, str]:
    (folder / "words.txt").write_text("a few words and a few more")
    values = {"suite": suite.__name__.lower(), "folder": folder, "registry": registry()}
    return failures(type("Suite", (SuiteSuite,), values))


@pytest.mark.parametrize(
    ("reporter", "test", "text"),
    [
        (Raises, "test_it_hears_a_run", "line raised KeyError"),
        (Meddles, "test_it_changes_nothing", "changes"),
        (Draws, "test_it_changes_nothing", "global generator"),
        (Sound, "test_it_hears_a_run", "takes no arguments"),
    ],
)
def test_a_broken_reporter_is_found(reporter: type, test: str, text: str) -> None:
    values = {"reporter": reporter.__name__.lower(), "registry": registry()}
    assert text in failures(type("Suite", (ReporterSuite,), values))[test]


def test_a_reporter_that_cannot_go_on_is_found() -> None:
    values = {"reporter": "needsanewfolder", "registry": registry()}
    printed = failures(type("Suite", (ReporterSuite,), values))
    assert "start raised FileExistsError" in printed["test_it_hears_a_run_that_goes_on"]
    assert "test_it_hears_a_run" not in printed


def test_a_sound_reporter_passes() -> None:
    values = {"reporter": "silent", "registry": registry()}
    assert failures(type("Suite", (ReporterSuite,), values)) == {}
