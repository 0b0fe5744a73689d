"""Runs are found again from anywhere, replaced on purpose alone, and keep their evaluations."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import pytest

from tests.fixtures.command_line import Cse, refused

SHORT = ("--train.max_steps", "2", "--train.batch_size", "8", "--train.save_steps", "1")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    rows = [f"the dog {n}\tthe boat {m}\t{n * m % 5}" for n in range(5) for m in range(5)]
    path.write_text("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def run(cse: Cse, sentences: Path, pairs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run whose files were named by relative paths."""
    monkeypatch.chdir(sentences.parent)
    words = ("--data", sentences.name, "--dev", pairs.name, "--out", "run", "-q")
    said = cse("train", *words, *SHORT)
    assert said.code == 0, said
    return sentences.parent / "run"


def test_a_run_repeats_and_resumes_from_anywhere(
    cse: Cse, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tomllib.loads((run / "run.toml").read_text(encoding="utf-8"))
    assert recipe["data"]["path"] == [str(tmp_path / "sentences.txt")]
    assert recipe["train"]["dev"] == [str(tmp_path / "pairs.tsv")]
    assert recipe["model"]["name"] == "starter"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert cse("train", "--recipe", "../run", "--out", "again", "-q").code == 0
    moved = Path(shutil.move(run, elsewhere / "moved"))
    whole = Path(shutil.move(moved / "model", tmp_path / "whole"))
    (moved / "result.json").unlink()
    shutil.rmtree(moved / "checkpoints/step-2")
    assert cse("train", "--resume", "moved", "-q").code == 0
    weights = (elsewhere / "again/model/model.safetensors").read_bytes()
    assert weights == (moved / "model/model.safetensors").read_bytes()
    for file in filter(Path.is_file, whole.rglob("*")):
        resumed = moved / "model" / file.relative_to(whole)
        if file.name != "README.md":  # which names the run by its folder
            assert resumed.read_bytes() == file.read_bytes(), file


def test_a_finished_run_says_how_to_repeat_it_and_go_on(cse: Cse, run: Path) -> None:
    said = cse("train", "--resume", "run")
    refused(said, "run 'run' has already finished", "--recipe run --out DIR", "--model run")
    assert cse("train", "--recipe", "run", "--model", "run", "--out", "more", "-q").code == 0


def test_a_run_is_replaced_by_force_alone(cse: Cse, run: Path) -> None:
    before = (run / "model/model.safetensors").read_bytes()
    words = ("train", "--recipe", "run", "--seed", "5", "--out", "run", "-q")
    refused(cse(*words), "already holds a run", "--force replaces it")
    refused(cse(*words, "--train.device", "cuda:99", "--force"), "cuda")
    assert (run / "model/model.safetensors").read_bytes() == before
    (run / "notes.txt").write_text("mine")
    assert cse(*words, "--force").code == 0
    assert (run / "model/model.safetensors").read_bytes() != before
    assert (run / "notes.txt").read_text() == "mine"
    assert json.loads((run / "result.json").read_text())["steps"] == 2


def test_force_replaces_nothing_but_a_run(cse: Cse, sentences: Path) -> None:
    other = sentences.parent / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("dear")
    said = cse("train", "--data", str(sentences), "--out", str(other), "--force", *SHORT)
    refused(said, "holds other things", "thesis.tex")
    refused(cse("train", "--resume", str(other), "--force"), "--force")


def test_evaluations_are_kept_in_the_run(cse: Cse, run: Path, pairs: Path) -> None:
    words = ("eval", "starter", "run", "--pairs", "pairs.tsv", "--max-length", "16", "--json")
    said = json.loads(cse(*words).out)
    assert cse("eval", "run", "--pairs", str(pairs)).code == 0
    lines = [json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()]
    assert lines[0]["results"] == said["models"][1]["results"]
    assert lines[0]["options"] == {"pairs": [str(pairs)], "max_length": 16}
    assert lines[1]["options"] == {"pairs": [str(pairs)]}
    assert len(lines) == 2


def test_an_evaluation_writes_through_no_link(cse: Cse, run: Path, tmp_path: Path) -> None:
    (tmp_path / "target").write_text("kept")
    (run / "evaluations.jsonl").symlink_to(tmp_path / "target")
    said = cse("eval", "run", "--pairs", "pairs.tsv", "--no-baselines")
    assert said.code == 0 and "is a link" in said.err
    assert (tmp_path / "target").read_text() == "kept"
