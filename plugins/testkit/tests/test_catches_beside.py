"""The suites of what stands beside the parts find what is broken: suites, reporters."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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


FILES = "it_finds_its_files"
SCORES = "its_scores_are_finite_and_repeat"
DEV = "it_reads_dev_sets_as_its_record_says"


def test_a_broken_suite_is_found_and_a_sound_one_passes(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("a few words and a few more")
    for suite, promise, text in (
        (FindsAnywhere, FILES, "in an empty folder"),
        (Infinite, SCORES, "spread of words is inf"),
        (Twice, SCORES, "two sets have one name: words, words"),
        (Unjson, SCORES, "its scores are not valid JSON"),
        (Random, SCORES, "is another"),
        (Silent, FILES, "missing 1 required positional argument"),
        (DevUnsaid, DEV, "read_dev is its own: dev=True"),
        (DevOfPairs, DEV, "takes a file of graded pairs"),
        (DevOfNothing, DEV, "read_dev returns None"),
        (DevWithoutItsChoice, DEV, "may choose by recall"),
    ):
        assert text in found(SuiteSuite, suite=suite, folder=tmp_path)[promise], suite
    for sound in (Sound, Dev):
        assert found(SuiteSuite, suite=sound, folder=tmp_path) == {}


def test_a_broken_reporter_is_found_and_a_sound_one_passes() -> None:
    for reporter, promise, text in (
        (Raises, "it_hears_a_run", "line raised KeyError"),
        (Meddles, "it_hears_a_run", "changes"),
        (Draws, "it_hears_a_run", "global generator"),
        (Sound, "it_hears_a_run", "takes no arguments"),
        (NeedsANewFolder, "it_hears_a_run", "start of a run that goes on raised FileExistsError"),
    ):
        assert text in found(ReporterSuite, reporter=reporter)[promise], reporter
    assert found(ReporterSuite, reporter=Silent) == {}


def found(base: type, **values: Any) -> dict[str, str]:
    named = {k: v.__name__.lower() if isinstance(v, type) else v for k, v in values.items()}
    return failures(type("Suite", (base,), {**named, "registry": registry()}))
