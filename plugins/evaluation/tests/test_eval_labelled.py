"""``cse eval`` of labelled texts with the embedded encoder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cse_core.runtime.loading import package_path
from tests.fixtures.command_line import Cse, refused

THINGS = ("dog", "cat", "horse", "boat", "train", "car")
ROWS = [
    (str(int(thing in THINGS[:3])), f"The {thing} was {how} {when}.")
    for thing in THINGS
    for how in ("old", "near", "lost", "loud")
    for when in ("today", "in May")
]
LONG = "It rained all day and nobody came to see the harbour, so we went home. "


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def write(name: str, rows: list[tuple[str, ...]], *columns: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join("\t".join(row) for row in [columns, *rows]) + "\n")

    pairs = [(a[0], a[1], b[1]) for a, b in zip(ROWS, ROWS[1:], strict=False)]
    write("transfer/mr.tsv", ROWS, "label", "text")
    write("transfer/mrpc.train.tsv", pairs, "label", "sentence1", "sentence2")
    write("transfer/mrpc.test.tsv", pairs[::3], "label", "sentence1", "sentence2")
    write("classify/news.train.tsv", [(a, LONG + b) for a, b in ROWS], "label", "text")
    write("classify/news.test.tsv", [(a, LONG + b) for a, b in ROWS[::3]], "label", "text")
    write("stsb.test.tsv", [("1", "a dog", "a cat"), ("2", "b", "b")], "score", "text1", "text2")
    write("graded.tsv", [("1", "a dog", "a cat")], "score", "text1", "text2")
    write("half/sst2.train.tsv", ROWS, "label", "text")
    write("broken/mr.tsv", [("1",)], "label", "text")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_transfer_suite(cse: Cse, folder: Path) -> None:
    words = ("eval", "starter", "--suite", "transfer", "--data-dir", ".", "--json")
    said = cse(*words, "--items-out", "items.tsv")
    assert said.code == 0, said.err
    answer = json.loads(said.out)
    results = answer["results"]
    assert list(results) == ["mr", "mrpc", "transfer.mean-of-2"]
    assert (results["mr"]["folds"], results["mr"]["setting"]) == (10, "cross-validation")
    assert results["mr"]["texts"] == "cut at 512 tokens"
    assert 0 <= results["mr"]["accuracy"] <= 100
    assert {"tfidf", "majority", "seed"} <= set(results["mr"])
    assert {"f1", "tfidf_f1"} <= set(results["mrpc"])
    assert answer["missing"] == ["cr", "subj", "mpqa", "sst2", "trec"]
    assert answer["folder"] == "transfer"
    assert said.errors == [
        "not there, looked for in transfer: cr, subj, mpqa, sst2, trec",
        "ranks of documents' titles and labels that were right are in items.tsv",
    ]
    lines = [line.split("\t") for line in Path("items.tsv").read_text().splitlines()[1:]]
    for name in ("mr", "mrpc"):
        right = [int(line[3]) for line in lines if line[0] == name]
        assert len(right) == results[name]["test"]
    assert 100 * sum(right) / len(right) == pytest.approx(results["mrpc"]["accuracy"], abs=1e-3)


def test_suites_together_and_two_models(cse: Cse, folder: Path) -> None:
    words = ("eval", "starter", "starter", "--data-dir", ".", "--suite", "sts", "--suite")
    said = cse(*words, "transfer", "--no-baselines")
    assert said.code == 0, said.err
    for shown in ("stsb.test", "transfer.mean-of-2", "+0.00", "majority"):
        assert shown in said.out
    assert "TF-IDF" not in said.out
    assert "classifiers of mr: 110 of 110" in said.err
    assert "texts of starter: 48 of 48" in said.err
    models = json.loads(cse(*words, "transfer", "--json").out)["models"]
    assert models[0]["results"] == models[1]["results"]
    assert {"stsb.test", "mr", "mrpc"} <= set(models[0]["results"])


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
    assert cut["tokens"] == sliced["tokens"] and sliced["tokens"]["longer"] == 100
    whole = result("--suite", "classify", "--data-dir", ".", "--max-length", "512")
    assert whole["tokens"] == {"mean": sliced["tokens"]["mean"], "longer": 0}
    assert 20 < whole["tokens"]["mean"] < 40
    assert cut["dev_accuracy"] < sliced["dev_accuracy"]  # what differs stands at the end


@pytest.fixture
def short(folder: Path) -> Path:
    """Return a copy of the starter that says it was trained with 16 tokens."""
    copy = folder / "short"
    shutil.copytree(package_path("cse_starter:encoder"), copy)
    manifest = json.loads((copy / "cse.json").read_text()) if (copy / "cse.json").exists() else {}
    plain = {"row": {"use": "mean", "options": {}}, "heads": [], "slice": None}
    (copy / "cse.json").write_text(json.dumps({**plain, **manifest, "max_length": 16}))
    return copy


@pytest.mark.slow
def test_compared_models_read_the_same_texts(cse: Cse, folder: Path, short: Path) -> None:
    """Whatever they were trained with, unless a length is named; pairs keep the model's own."""
    words = ("eval", "starter", "short", "--data-dir", ".", "--no-baselines", "--json")
    said = cse(*words, "--suite", "transfer", "--suite", "sts")
    assert said.code == 0, said.err
    one, other = json.loads(said.out)["models"]
    assert other["encoder"].endswith("at most 16 tokens")
    assert other["results"]["mr"] == one["results"]["mr"]
    assert one["results"]["mr"]["texts"] == "cut at 512 tokens"
    assert "short at 16 tokens" in said.err
    said = cse(*words, "--suite", "transfer", "--max-length", "12")
    for model in json.loads(said.out)["models"]:
        assert model["results"]["mr"]["texts"] == "cut at 12 tokens"
    assert "different lengths" not in said.err
    said = cse(*words, "--suite", "transfer", "--long-texts", "slice")
    assert "slices of 16 tokens" in json.loads(said.out)["models"][1]["results"]["mr"]["texts"]


def test_a_dry_run_lists_what_would_be_scored(cse: Cse, folder: Path) -> None:
    words = ("eval", "starter", "--suite", "transfer", "--suite", "sts", "--data-dir", ".")
    found = json.loads(cse(*words, "--dry-run", "--json").out)
    assert found["sets"] == [
        {"name": "stsb.test", "kind": "graded pairs", "size": 2},
        {"name": "mr", "kind": "labelled texts", "size": len(ROWS)},
        {"name": "mrpc", "kind": "labelled texts", "size": 63},
    ]
    assert {"sts12.test", "cr"} <= set(found["missing"])
    said = cse(*words, "--dry-run")
    assert "│ mrpc" in said.out and "spearman" not in said.out.lower()
    refused(cse("eval", "starter", "--labelled", "broken/mr.tsv", "--dry-run"), "broken/mr.tsv")


def test_tables_that_are_no_labelled_texts_are_told(cse: Cse, folder: Path) -> None:
    (folder / "classify" / "graded.tsv").write_text("score\ttext1\ttext2\n1\ta\tb\n")
    said = cse("eval", "starter", "--suite", "classify", "--data-dir", ".", "--no-baselines")
    assert said.code == 0, said.err
    assert "left out of classify, without label and text: graded.tsv" in said.errors


def test_named_files_are_the_suite(cse: Cse, folder: Path) -> None:
    """Without --data-dir the folder of suites is not looked for, and no graded pairs are."""
    asked = ("eval", "starter", "--no-baselines", "--json", "--labelled", "transfer/mr.tsv")
    alone = json.loads(cse(*asked).out)["results"]
    assert set(alone) == {"mr"}
    assert json.loads(cse(*asked, "--suite", "classify").out)["results"] == alone
    beside = json.loads(cse(*asked, "--data-dir", "transfer").out)
    assert beside["results"] == alone and beside["missing"] == []


MISTAKES = [
    ("--suite transfer", "/nowhere", "--data-dir"),
    ("--suite transfer --data-dir classify", "no transfer task", "sst2.train", "--data-dir"),
    ("--suite transfer --data-dir half", "no transfer task"),
    ("--suite transfer --data-dir broken", "broken/mr.tsv, line 2", "1 fields"),
    ("--suite transfr", "--suite", "did you mean transfer?"),
    ("--labelled graded.tsv", "graded.tsv", "no column label"),
    ("--labelled half/sst2.train.tsv", "sst2.test is missing", "cross-validation"),
    ("--labelled nothere.tsv", "nothere.tsv", "no such file"),
    ("--labelled transfer/mr.tsv --long-texts sliced", "--long-texts", "did you mean slice?"),
    ("--labelled transfer/mr.tsv --pairs-out x.tsv", "--pairs-out", "--pairs FILE"),
    ("--data starter --items-out x.tsv", "--items-out", "--documents FILE or --labelled FILE"),
    ("--labelled transfer/mr.tsv --suite transfer --data-dir .", "two tasks", "'mr'"),
    ("--labelled transfer/mr.tsv --seed -1", "--seed"),
    ("--labelled transfer/mr.tsv --similarity dot", "--similarity", "no documents", "--documents"),
    ("--labelled transfer/mr.tsv --candidates a.txt", "--candidates", "no documents"),
    ("--suite retrieval --similarity dt", "--similarity", "did you mean dot?"),
    ("--labelled transfer/mr.tsv --similarity dt", "--similarity", "did you mean dot?"),
    ("--labelled transfer/mr.tsv --batch-tokens 0 --no-baselines", "--batch-tokens"),
]


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case[0])
def test_mistakes(cse: Cse, folder: Path, case: tuple[str, ...]) -> None:
    refused(cse("eval", "starter", *case[0].split()), *case[1:])
