"""``cse data show-pairs`` on a run of clusters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cse_testkit import compose, installed_registry, tiny_corpus, write_corpus

from cse_cli.main import run
from cse_core.runtime.reporter import Reporter
from cse_core.training.run import train


def test_clusters_of_a_document_round_by_round(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = tiny_corpus(columns=("document", "title"))
    file = write_corpus(corpus, tmp_path / "rows.csv")
    sets = [f"data.path=[{file}]", "train.max_steps=1", "train.device=cpu", "train.dev=none"]
    composition = compose(recipe="infocse", corpus=corpus, sets=sets)
    folder = tmp_path / "run"
    train(composition, installed_registry(), out=folder, reporter=Reporter())
    capsys.readouterr()
    words = ["data", "show-pairs", str(folder), "--document", "document 1"]
    assert run([*words, "--json"]) == 0
    rounds = json.loads(capsys.readouterr().out)["rounds"]
    own = set(corpus.column("text").take([4, 5, 6, 7]))
    assert [each["round"] for each in rounds] == [1, 2, 3, 4]
    for each in rounds:
        shown = [text for cluster in each["clusters"] for text in cluster] + each["unpaired"]
        assert set(shown) == own and len(shown) == 4 and each["pairs"] >= 2
    assert run(words) == 0
    printed = capsys.readouterr().out
    assert "round 2:" in printed and "cluster 1" in printed
    assert run(["data", "show-pairs", str(folder), "--rows", "2"]) == 0
    assert run([*words[:-1], "no such"]) == 2
    assert "no such document" in capsys.readouterr().err
    assert run(["data", "show-pairs", str(tmp_path)]) == 2
    assert "is not a run" in capsys.readouterr().err
