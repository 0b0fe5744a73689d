"""What ``train.dev`` names: files that a suite takes, files of graded pairs, neither."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cse_evaluation.plugin import cse_suites
from cse_evaluation.sts import PairDevSet
from cse_evaluation.vectors import EncodedTexts

from cse_core.errors import CseError
from cse_core.records import SourceSpec, SuiteSpec
from cse_core.registry.plugin_info import KnownPart
from cse_core.registry.registry import Registered, Registry
from cse_core.suites import DevSet, Suite
from cse_defaults.texts import Corpus
from cse_engine.compose.settings import TrainOptions
from cse_engine.run.dev_sets import DEV, dev_sets
from cse_engine.run.selection import Scorer
from tests.fixtures.methods import refusal

PAIRS = [
    Registered(each, "cse-evaluation", "1", "cse-evaluation:it")
    for each in cse_suites()
    if each.dev == "pairs"
]
"""The suite of graded pairs, which is asked after the others."""


KNOWN = (KnownPart("suite", "words", "cse-words", (DEV,)),)


class Words(DevSet):
    def score(self, encode: Any) -> dict[str, float]:
        return {"spread": float(encode(["a", "bb"]).std())}

    def scored_texts(self) -> Sequence[str]:
        return ["a", "bb", "ccc", "a"]


class WordSuite(Suite):
    def read_dev(self, path: str | os.PathLike[str]) -> DevSet | None:
        return Words(Path(path).stem, ("spread",), 2) if str(path).endswith(".words") else None


class Greedy(Suite):
    def read_dev(self, path: str | os.PathLike[str]) -> DevSet | None:
        raise AssertionError("asked, and its record does not say that it reads dev sets")


def registry(*, dev: bool = True, installed: bool = True) -> Registry:
    records = [
        SuiteSpec(name="all", summary="asks", factory=f"{__name__}:Greedy"),
        SuiteSpec(name="words", summary="words", factory=f"{__name__}:WordSuite", dev=dev),
    ]
    parts = [Registered(each, "cse-words", "1", "cse-words:it") for each in records]
    return Registry([*PAIRS, *(parts if installed else ())], known=KNOWN)


def read(registry: Registry, *names: str, warned: list[str] | None = None) -> list[DevSet]:
    return dev_sets(TrainOptions(dev=names), ("tiny",), registry, (warned or []).append)


def lengths(texts: Sequence[str]) -> torch.Tensor:
    return torch.tensor([[len(text), text.count("b"), 1.0] for text in texts])


def pairs(folder: Path) -> str:
    path = folder / "sts.tsv"
    path.write_text("sentence1\tsentence2\tscore\na b\ta c\t3\na\tz\t0\nb c\tb bc\t5\n")
    return str(path)


def test_a_suite_is_asked_before_a_file_is_read_as_pairs(tmp_path: Path) -> None:
    names = (str(tmp_path / "own.words"), pairs(tmp_path), pairs(tmp_path))
    sets = read(registry(), *names)
    assert [type(each) for each in sets] == [Words, PairDevSet, PairDevSet]
    scorer = Scorer(sets, None)
    assert (list(scorer.dev), scorer.select) == (["own", "sts", "sts-2"], "mean")
    scores, better = scorer.score(lengths, 1, 0, {})
    assert better and {"own.spread", "sts.spearman", "sts-2.spearman"} <= scores.keys()
    assert scores["sts.spearman"] == scores["sts-2.spearman"]
    assert Scorer(sets, "sts-2").select == "sts-2.spearman"
    assert Scorer(sets, "own").select == "own.spread"


def test_texts_that_are_trained_on_too_are_counted(tmp_path: Path) -> None:
    names, warned = (str(tmp_path / "own.words"), pairs(tmp_path)), list[str]()
    trained = Corpus.from_columns({"text": ["bb", "bb", "x"], "positive": ["ccc", "b bc", "y"]})
    for corpus, said in ((trained, ["own: 2 of its 3", "sts: 1 of its 6"]), (None, [])):
        warned.clear()
        dev_sets(TrainOptions(dev=names), (), registry(), warned.append, corpus=corpus)
        assert [line.split(" texts stand in the training data too")[0] for line in warned] == [
            f"dev set {part}" for part in said
        ]


def test_a_file_of_a_suite_that_is_not_there_says_what_brings_it(tmp_path: Path) -> None:
    other = tmp_path / "other.tsv"
    other.write_text("text\tdocument\ttitle\na\t1\tb\n")
    wanted = "no column sentence1, sentence2, score; the columns are 'text', 'document', 'title'"
    line = refusal(read, registry(installed=False), str(other))
    assert line.startswith(f"{other}: {wanted}")
    assert "or be one of suite words (" in line and "not installed: install cse-words)" in line
    for found in (registry(), Registry(PAIRS)):
        line = refusal(read, found, str(other))
        assert line.startswith(f"{other}: {wanted}") and "cse-words" not in line


class Tiny:
    def pairs(self, split: str) -> list[dict[str, Any]]:
        assert split == "dev"
        return [{"sentence1": "a", "sentence2": b, "score": n} for n, b in enumerate("abc")]


def test_without_a_suite_of_pairs_each_dev_set_is_refused_but_that_of_auto(tmp_path: Path) -> None:
    data = SourceSpec(name="tiny", summary="tiny", factory=f"{__name__}:Tiny")
    tiny = Registered(data, "cse-tiny", "1", "cse-tiny:it")
    for name in ("tiny", "auto"):
        (found,) = read(Registry([tiny, *PAIRS]), name)
        assert (found.name, found.size) == ("tiny.dev", 3)
    printed = "no installed suite can read this dev set"
    for registry in (Registry([tiny]), Registry([tiny], known=KNOWN)):
        for name in ("tiny", pairs(tmp_path), str(tmp_path / "nowhere")):
            with pytest.raises(CseError, match=printed) as caught:
                read(registry, name)
            hint = "it may be one of suite words (it is a part of cse-words, not installed: "
            assert str(caught.value).endswith(f"{hint}install cse-words)") == bool(registry.known)
        warned = ["first"]
        assert read(registry, "auto", warned=warned) == []
        assert len(warned) == 2 and warned[1].startswith(f"tiny.dev: {printed}")


def test_metrics_are_of_pairs_alone(tmp_path: Path) -> None:
    class Count:
        def compute(self, encode: Any, pairs: Any) -> dict[str, float]:
            assert isinstance(encode, EncodedTexts)
            return {"texts": float(len(encode(pairs.texts)))}

    scorer = Scorer(read(registry(), str(tmp_path / "own.words"), pairs(tmp_path)), None)
    calls: list[int] = []

    def encode(texts: Sequence[str]) -> torch.Tensor:
        calls.append(len(texts))
        return lengths(texts)

    scores, _ = scorer.score(encode, 1, 0, {"count": Count()})  # type: ignore[dict-item]
    assert scores["sts.count.texts"] == 6 and "own.count.texts" not in scores
    assert calls == [2, 6]  # the pairs' texts once, for their scores and the metric


def test_other_texts_go_to_the_encoder() -> None:
    calls: list[list[str]] = []

    def encode(texts: Sequence[str]) -> np.ndarray[Any, Any]:
        calls.append(list(texts))
        return lengths(texts).numpy()

    encoded = EncodedTexts(encode, ["a", "bb", "a"])
    assert calls == []
    assert encoded(["bb", "a", "bb"]).tolist() == lengths(["bb", "a", "bb"]).tolist()
    encoded.unit(["a"])
    assert encoded(["a", "c"]).tolist() == lengths(["a", "c"]).tolist()
    assert calls == [["a", "bb"], ["a", "c"]]
