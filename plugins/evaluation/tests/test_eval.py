"""``cse eval`` and ``cse.evaluate`` with the embedded encoder, and their tables."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cse_evaluation import probe
from cse_evaluation.cli.outputs import write_pairs_out
from cse_evaluation.cli.report import GEOMETRY, PAIRS, pair_lines, table
from cse_evaluation.pairs import pairs_from_rows, read_pairs
from cse_evaluation.results import Result
from cse_evaluation.sts import score_pairs, score_words
from rich.console import Console
from rich.table import Table

import cse as toolkit
from cse_core.errors import CseError
from tests.fixtures.command_line import Cse, refused
from tests.fixtures.evaluation import HashEncoder


@pytest.fixture
def folder(files: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in the folder, with three folds."""
    monkeypatch.setattr(probe, "FOLDS", 3)
    monkeypatch.chdir(files)
    return files


def test_all_suites_of_a_folder(cse: Cse, folder: Path, tmp_path: Path) -> None:
    """What ``--json`` says, what ``--items-out`` holds, and Python gives the same."""
    suites = ("sts", "chinese", "transfer", "classify", "retrieval")
    words = [word for suite in suites for word in ("--suite", suite)]
    items = tmp_path / "items.tsv"
    said = cse("eval", "starter", *words, "--data-dir", ".", "--pairs", "lcqmc.dev.tsv", "--json",
               "--items-out", str(items))  # fmt: skip
    assert said.code == 0, said.err
    answer = json.loads(said.out)
    found = answer["results"]
    assert list(found) == ["stsb.test", "cstsb.test", "lcqmc.dev", "mr", "mrpc",
                           "transfer.mean-of-2", "news", "b.all"]  # fmt: skip
    missing = "sts12.test sts13.test sts14.test sts15.test sts16.test sickr.test cstsb.dev"
    more = "simclue.test simclue.dev cr subj mpqa sst2 trec"
    assert answer["missing"] == [*missing.split(), *more.split()]
    assert answer["folder"] == "."
    for name in ("cstsb.test", "lcqmc.dev"):
        assert found[name]["lexical"]["units"] == "character 1-2-grams"
    assert found["lcqmc.dev"]["binary"]["positives"] == 4 and "binary" not in found["cstsb.test"]
    assert (found["mr"]["folds"], found["mr"]["setting"]) == (3, "cross-validation")
    assert found["mr"]["texts"] == "cut at 512 tokens"
    assert found["news"]["texts"] == "mean over slices of 512 tokens, weighted by their length"
    assert {"tfidf", "majority", "seed"} <= set(found["mr"])
    assert {"f1", "tfidf_f1"} <= set(found["mrpc"])
    assert found["b.all"]["documents"] == 12
    assert "not there, looked for in transfer: cr, subj, mpqa, sst2, trec" in said.errors
    lines = [line.split("\t") for line in items.read_text().splitlines()[1:]]
    for name in ("mr", "mrpc", "news"):
        right = [int(line[3]) for line in lines if line[0] == name]
        assert len(right) == found[name]["test"]
        if name != "mr":
            accuracy = 100 * sum(right) / len(right)
            assert accuracy == pytest.approx(found[name]["accuracy"], abs=1e-3)
    again = toolkit.evaluate(
        "starter", suite=["sts", "retrieval"], data_dir=".", pairs="lcqmc.dev.tsv", quiet=True
    )
    assert list(again["results"]) == ["stsb.test", "lcqmc.dev", "b.all"]
    assert again["results"].items() <= found.items()


def test_two_models_side_by_side(cse: Cse, folder: Path) -> None:
    """Compared models cut labelled texts the same way; each cuts pairs at its own length."""
    words = ("eval", "starter", "short", "--data-dir", ".", "--no-baselines", "--suite", "sts",
             "--suite", "transfer")  # fmt: skip
    said = cse(*words)
    assert said.code == 0, said.err
    for shown in ("stsb.test", "transfer.mean-of-2", "majority"):
        assert shown in said.out
    mean = next(line for line in said.out.splitlines() if "transfer.mean-of-2" in line)
    assert "+0.00" in mean, "both are cut at 512 tokens"
    assert "TF-IDF" not in said.out and "short at 16 tokens" in said.err
    assert "classifiers of mr: 3 of 3" in said.err and "texts of starter: 48 of 48" in said.err
    said = cse(*words, "--max-length", "12", "--json")
    one, other = json.loads(said.out)["models"]
    assert other["results"]["mr"] == one["results"]["mr"]
    assert one["results"]["mr"]["texts"] == "cut at 12 tokens"
    assert "different lengths" not in said.err


def test_long_texts_are_sliced_or_cut(cse: Cse, folder: Path) -> None:
    def result(*words: str) -> dict[str, Any]:
        said = cse("eval", "starter", "--max-length", "16", "--json", "--no-baselines", *words)
        assert said.code == 0, said.err
        found: dict[str, Any] = json.loads(said.out)["results"]["news"]
        return found

    sliced = result("--suite", "classify", "--data-dir", ".")
    assert sliced["texts"] == "mean over slices of 16 tokens, weighted by their length"
    files = ("classify/news.train.tsv", "classify/news.test.tsv")
    assert result("--labelled", files[1], "--labelled", files[0]) == sliced
    cut = result("--suite", "classify", "--data-dir", ".", "--long-texts", "cut")
    assert cut["texts"] == "cut at 16 tokens"
    assert cut["dev_accuracy"] < sliced["dev_accuracy"]  # what differs stands at the end


def test_what_is_scored_where_little_is_named(
    cse: Cse, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dry = ("eval", "starter", "--dry-run", "--json")

    def names(*words: str) -> list[str]:
        return [each["name"] for each in json.loads(cse(*dry, *words).out)["sets"]]

    found = json.loads(cse(*dry, "--suite", "transfer", "--suite", "sts", "--data-dir", ".").out)
    assert {"name": "mrpc", "kind": "labelled texts", "size": 63} in found["sets"]
    assert {"name": "stsb.test", "kind": "graded pairs", "size": 12} in found["sets"]
    assert {"sts12.test", "cr"} <= set(found["missing"])
    assert names() == ["starter.test"]
    assert names("--data-dir", ".") == ["stsb.test"]
    # Without --data-dir files that are named are the suite, and no graded pairs are looked for.
    labelled = ("--labelled", "transfer/mr.tsv")
    for more in ((), ("--suite", "classify")):
        assert names(*labelled, *more) == ["mr"]
    small = {"test": [{"sentence1": "a", "sentence2": f"b {n}", "score": n} for n in range(4)]}
    monkeypatch.setattr("cse_starter.corpus.StarterCorpus.pairs", lambda self, split: small[split])
    said = cse("eval", "starter", "--no-baselines")
    assert "synthetic sentences, made by a grammar" in said.err
    assert "no --suite, --pairs or --data: scored on the test pairs of starter" in said.errors


MISTAKES = [
    ("--suite transfer", "/nowhere", "--data-dir", "cse data fetch transfer"),
    ("--suite sts --data-dir graded.tsv", "this is not a directory"),
    ("--suite sts --data-dir docs", "no file of the suite sts is here (sts12.test, "),
    ("--suite chinese --data-dir docs", "no file of the suite chinese is here (cstsb.test, "),
    ("--suite classify --data-dir chinese", "any labelled texts", "--labelled FILE"),
    ("--suite retrieval --data-dir chinese", "any documents with titles", "--documents FILE"),
    ("--suite transfer --data-dir half", "sst2 (no sst2.test)"),
    ("--suite transfer --data-dir broken", "broken/mr.tsv, line 2", "1 fields"),
    ("--suite transfr", "--suite", "did you mean transfer?"),
    ("--suite held-out --data-dir docs", "is made of rows that are held out of training"),
    ("--labelled graded.tsv", "graded.tsv", "no column label"),
    ("--labelled half/sst2.train.tsv", "sst2.test is missing", "cross-validation"),
    ("--labelled nothere.tsv", "nothere.tsv", "no such file"),
    ("--labelled transfer/mr.tsv --data-dir transfer", "--data-dir", "no suite is named"),
    ("--data starter --seed 3", "--seed", "there are no labelled texts", "--labelled FILE"),
    ("--data starter --classifier senteval", "there are no labelled texts"),
    (
        "--labelled transfer/mr.tsv --metric mutual-information",
        "--metric",
        "there are no graded pairs",
    ),
    ("--labelled transfer/mr.tsv --long-texts sliced", "--long-texts", "did you mean slice?"),
    ("--labelled transfer/mr.tsv --classifier exakt", "--classifier", "did you mean exact?"),
    ("--labelled transfer/mr.tsv --pairs-out x.tsv", "--pairs-out", "--pairs FILE"),
    ("--data starter --items-out x.tsv", "--items-out", "--collections FOLDER or --labelled FILE"),
    ("--data starter --pairs-out no/x.tsv", "folder does not exist", "mkdir -p"),
    ("short --data starter --pairs-out x.tsv", "--pairs-out", "is for one model"),
    ("--labelled transfer/mr.tsv --suite transfer --data-dir .", "two sets", "'mr'"),
    ("--labelled transfer/mr.tsv --seed -1", "--seed"),
    ("--labelled transfer/mr.tsv --batch-tokens 0 --no-baselines", "--batch-tokens"),
    ("--data starter --metric nonesuch", "nonesuch"),
]


def test_mistakes(cse: Cse, folder: Path) -> None:
    for words, *said in MISTAKES:
        refused(cse("eval", "starter", *words.split()), *said)
    with pytest.raises(CseError, match="unknown option"):
        toolkit.evaluate("starter", pears="x.tsv")
    with pytest.raises(CseError, match="--seed: is not a seed"):
        toolkit.evaluate("starter", labelled=["transfer/mr.tsv"], seed="a")


def shown(*tables: Table, width: int = 200) -> str:
    console = Console(width=width, record=True, file=open(os.devnull, "w"))
    for each in tables:
        console.print(each)
    return console.export_text()


@pytest.fixture
def results(encoder: HashEncoder) -> list[Result]:
    sets = [
        pairs_from_rows(name, [
            {"subset": f"p{i % 2}", "sentence1": f"l {i}", "sentence2": f"r {i}", "score": i / 2}
            for i in range(10)
        ])
        for name in ("stsb.test", "sts12.test", "mine.dev")
    ]  # fmt: skip
    return score_pairs(encoder, sets, {each.name: score_words(each) for each in sets})


def test_tables(results: list[Result]) -> None:
    lines = pair_lines([results])
    text = shown(table(["mine"], [results], PAIRS, ("pairs",), lines))
    (line,) = [line for line in text.splitlines() if "stsb.test" in line]
    cells = [cell.strip() for cell in line.strip(" │").split("│")]
    known = {**results[0].facts, **results[0].scores}
    scores = ["undefined" if (score := known[name]) is None else f"{score:.2f}"
              for name in ("spearman", "tfidf", "jaccard")]  # fmt: skip
    assert cells == ["stsb.test", "test", "10", *scores]
    assert "All sets: setting all, score Spearman." in text
    two = [results, [Result.of(r.name, {"spearman": r.scores["spearman"] + 1.5}, r.facts,
                               split=r.split, setting=r.setting) for r in results]]  # fmt: skip
    narrow = shown(table(["one", "runs/infonce-2026-11-22-192600"], two, PAIRS, ("pairs",),
                         lines), width=80)  # fmt: skip
    assert narrow.count("+1.50") == 4 and max(map(len, narrow.splitlines())) <= 80
    assert "…" not in narrow
    geometry = shown(table(["mine"], [results], GEOMETRY, (), [], places=3))
    assert f"{results[0].facts['uniformity']['value']:.3f}" in geometry
    flat = Result.of("x", {"spearman": None}, results[0].facts, split="", setting="all")
    text = shown(table(["mine"], [[flat]], PAIRS, ("pairs",), pair_lines([[flat]])))
    assert "│ undefined │" in text and "collapsed" in text


def test_pairs_out_can_be_read_again(
    tmp_path: Path, results: list[Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"subset": "s", "sentence1": 'tab\there "q', "sentence2": "line\r\nbreak", "score": 0.1},
        {"sentence1": "c", "sentence2": "d", "score": 5},
    ]
    mine = pairs_from_rows("mine", rows)
    cosines = Result.of("mine", {}, {}, split="", setting="", items=np.array([0.25, -1.0]))
    path = tmp_path / "out.tsv"
    path.write_text("old")
    write_pairs_out(path, [mine], [cosines, results[-1]])
    head, first, _ = path.read_text().splitlines()
    assert head == "set\tgold\tcosine\tsubset\tsentence1\tsentence2"
    assert first == 'mine\t0.1\t0.250000\ts\ttab here "q\tline break'
    assert read_pairs(path).gold == mine.gold

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(CseError, match="cannot be written: No space left on device"):
        write_pairs_out(tmp_path / "other.tsv", [mine], [cosines])
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.tsv"]


def test_data_stats_of_chinese(cse: Cse, tmp_path: Path) -> None:
    zh = tmp_path / "zh.jsonl"
    rows = [{"text": f"一只{t}在这里。", "fraternal": f"here is {t}"} for t in "狗猫船树"]
    zh.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n")
    said = json.loads(cse("data", "stats", str(zh), "--json").out)
    assert said["words_mean"] is None and said["characters_mean"] == 7
    assert said["others"] == {"fraternal": {"words_mean": 3.0, "characters_mean": 9.0}}
    assert "written without spaces" in cse("data", "stats", str(zh)).out
